"""`dlo topology`: what the settings say would stand on the broker; none is contacted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service import rooms
from service.cli.processor import rules_of
from service.cli.screen import open_screen
from service.cli.topology import report
from service.settings import Settings
from service.topology.faults import faults
from tests.cli.terminal import dlo, dlo_here
from tests.topology.as_written import AS_WRITTEN, SENDS

NOWHERE = {"DLO_RABBIT__URL": "amqp://127.0.0.1:1/"}
FOUR_TIERS = {"DLO_DLQ_PROCESSOR__TIERS": '["1s","2s","3s","1m"]', **NOWHERE}


def test_the_tables_have_every_queue_with_its_arguments(folder: Path) -> None:
    done = dlo(folder, "topology", "show", **FOUR_TIERS)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("queue.delay.4")]
    assert "x-message-ttl: 60000" in line
    assert "x-dead-letter-exchange: retry-exchange-4" in line
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["dlq-exchange", "topic", "dlq-queue", "dlq-routing-key"] in rows
    assert ["test-retry-exchange", "topic"] in rows
    assert ["freeflow.events.retry", "direct", "freeflow.user.retry.5m", "user.5m"] in rows


def test_as_json_and_without_the_drill(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("topology", "show", "-o", "json")
    done = dlo_here(monkeypatch, folder, *words, DLO_DLQ_PROCESSOR__DRILL="false")
    document = json.loads(done.stdout)
    assert {"name": "retry-exchange", "type": "topic"} in document["exchanges"]
    waits = {row["name"]: row["arguments"].get("x-message-ttl") for row in document["queues"]}
    assert (waits["queue.delay.1"], waits["retry-queue"]) == (10_000, None)
    assert {
        "exchange": "route-delay",
        "queue": "queue.delay.1",
        "key": "binding.#.1",
    } in document["bindings"]
    assert "test-pass-queue" not in waits


def test_as_a_drawing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = dlo_here(monkeypatch, folder, "topology", "show", "-o", "mermaid")
    assert done.stdout.startswith("flowchart LR\n")
    assert 'queue.delay.3<br/>waits 20s"]' in done.stdout


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_our_own_topology_has_no_faults(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    done = dlo_here(monkeypatch, folder, "topology", "check", DLO_QUEUES__TYPE=kind, **FOUR_TIERS)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "no faults\n", "")


def test_faults_are_a_line_each_and_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    found = faults(AS_WRITTEN, SENDS)
    assert report(open_screen(color=False), found) == 1
    assert capsys.readouterr().out.splitlines() == [fault.sentence for fault in found]
    assert len(found) > 3


def test_bad_settings_are_exit_2(folder: Path) -> None:
    bad = dlo(folder, "topology", "show", DLO_DLQ_PROCESSOR__TIERS='["soon"]')
    assert bad.returncode == 2
    assert bad.stderr.startswith(
        "The settings cannot be used:\n  dlq_processor.tiers.0: given 'soon'"
    )


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_command_line_and_the_service_read_the_same_rules(kind: str) -> None:
    settings = Settings.model_validate(
        {"queues": {"type": kind}, "dlq_processor": {"tiers": ["1m"]}}
    )
    assert rules_of(settings) == rooms.processor_rules(settings)
