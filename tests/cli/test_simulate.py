"""`dlo simulate`: a letter's story, told by our own handlers; no broker, no database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import dlo, dlo_here, sentence

NOWHERE = {
    "DLO_RABBIT__URL": "amqp://127.0.0.1:1/",
    "DLO_DATABASE__URL": "postgresql://127.0.0.1:1/d",
}


def simulate(folder: Path, *words: str, **variables: str) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        words = ("simulate", *words, "-o", "json")
        done = dlo_here(patch, folder, *words, **NOWHERE, **variables)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_letter_that_is_accepted_at_its_third_delivery(folder: Path) -> None:
    words = ("--key", "order.created", "--fail", "2", "--max-retries", "2")
    done = dlo(folder, "simulate", *words, **NOWHERE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        " 0s published to shop with the key order.created",
        " 0s rejected by orders",
        " 0s retry 1, waits in queue.delay.1 for 10s",
        "10s back in orders",
        "10s rejected by orders",
        "10s retry 2, waits in queue.delay.2 for 15s",
        "25s back in orders",
        "25s accepted by orders",
        "after 25s the letter was accepted by orders",
    ]


def test_a_letter_whose_retries_are_spent(folder: Path) -> None:
    story = simulate(folder, "--key", "order.created", "--fail", "3", "--max-retries", "2")
    assert (story["end"], story["queue"]) == ("dead letter", "dlq-queue")
    assert story["reason"] == "failed 3 times: rejected by a consumer of orders"
    assert story["moments"][-1]["after_ms"] == 25_000


def test_a_letter_without_a_route_dies_at_once_and_the_way_out_is_said(folder: Path) -> None:
    done = dlo(folder, "simulate", "--key", "order.created", "--fail", "2")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == [
        "0s dead letter in dlq-queue: no route for order.created",
        "after 0s the letter is a dead letter in dlq-queue",
    ]
    assert done.stderr == (
        "[routes] in the settings has none for order.created, and the table dlq_event_config is not"
        " read here: --max-retries N stands for a route\n"
    )


def test_without_a_failure_there_is_nothing_to_do(folder: Path) -> None:
    done = dlo(folder, "simulate", "--key", "order.created", "--fail", "0")
    assert done.stdout.splitlines()[-1] == "after 0s the letter was accepted by orders"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("routes", "words", "moments"),
    [
        ('{"order.*" = 5}', (), [1, 2, 2, 2]),
        ('{"order.*" = {max_retries = 5, delays = ["2s"]}}', (), [2, 2, 2, 2]),
        ('{"order.*" = {max_retries = 1, return_to = "exchange"}}', (), [1]),
        ('{"order.*" = {delays = ["2s"]}}', ("--max-retries", "1"), [2]),
        ('{"other" = 5}', ("--max-retries", "-1"), [1, 2, 2, 2]),
    ],
)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_tiers_and_routes_are_those_of_the_settings(
    folder: Path, kind: str, routes: str, words: tuple[str, ...], moments: list[int]
) -> None:
    told = {"DLO_DLQ_PROCESSOR__TIERS": '["1s","2s"]', "DLO_ROUTES": routes}
    story = simulate(
        folder, "--key", "order.created", "--fail", "4", *words, DLO_QUEUES__TYPE=kind, **told
    )
    back = [m["after_ms"] // 1000 for m in story["moments"] if m["what"] == "back in orders"]
    assert back == [sum(moments[: n + 1]) for n in range(len(moments))]
    assert story["end"] == ("accepted" if len(moments) == 4 else "dead letter")


def test_the_drills_keys_have_a_route_where_the_drill_is_on(folder: Path) -> None:
    on = simulate(folder, "--key", "rk.test.fail.pass", DLO_DLQ_PROCESSOR__DRILL="true")
    off = simulate(folder, "--key", "rk.test.fail.pass", DLO_DLQ_PROCESSOR__DRILL="false")
    assert (on["end"], off["reason"]) == ("accepted", "no route for rk.test.fail.pass")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--key", "order.*"], "'order.*' is a pattern: name one routing key, like order.created"),
        (["--key", "k" * 256], "a routing key has 255 bytes at most"),
        (["--key", "k", "--fail", "-1"], "-1 is not in the range 0<=x<=1000."),
        (["--key", "k", "--fail", "often"], "'often' is not a valid int"),
        (["--key", "k", "--max-retries", "-2"], "-2 is not in the range x>=-1."),
        ([], "Missing option '--key'."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    done = dlo_here(monkeypatch, folder, "simulate", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in sentence(done.stderr)
