"""`dlo doctor`: a healthy service, and every way to be ill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.kit.broker import channel_to, clean
from tests.kit.process import ROOT, Service, environment, running

DLO = "from service.cli.main import main; main()"


def examined(settings: Mapping[str, str]) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and grade and sentence of each finding."""
    command = [sys.executable, "-c", DLO, "doctor", "-o", "json"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr
    found = json.loads(done.stdout)
    return done.returncode, {row["about"]: (row["grade"], row["says"]) for row in found}


async def test_a_healthy_service_an_idle_one_and_a_queue_that_differs(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    adopting = {"DLO_LEDGER__INTAKE": "true", "DLO_ADOPT": '[{queue = "orders.dlq"}]'}
    settings = environment(rabbit_url, sqlite_url, **adopting)
    async with running(Service(settings, tmp_path)):
        code, found = examined(settings)
        assert code == 0, found
        assert found.pop("orders.dlq")[0] == "warning"
        assert {grade for grade, _ in found.values()} == {"ok"}
        assert found["dlq-queue"] == ("ok", "0 letters, 1 consumers")
        assert found["retry-queue"] == ("ok", "0 letters, 1 consumers")
        other = {**settings, "DLO_DLQ_PROCESSOR__TIERS": '["1s","150ms","200ms"]'}
        code, found = examined(other)
        assert code == 1
        assert "stands with x-message-ttl = 100, the settings say 1000" in found["queue.delay.1"][1]
    code, found = examined(settings)
    assert code == 1
    assert found["retry-queue"] == ("fault", "nobody consumes it, 0 letters wait")
    async with channel_to(rabbit_url) as channel:
        await channel.queue_delete("dlq-queue")
    assert examined(settings)[1]["dlq-queue"][0] == "fault"


def test_no_broker_no_schema_no_key(tmp_path: Path) -> None:
    ledger = f"sqlite+aiosqlite:///{tmp_path / 'dlo.db'}"
    settings = {
        **environment("amqp://127.0.0.1:1/", ledger),
        "DLO_MARKS__KEY": "",
        "DLO_FLOWS": '["dlq_processor", "freeflow"]',
    }
    code, found = examined(settings)
    assert code == 1
    assert "127.0.0.1:1 cannot be reached" in found["rabbitmq"][1]
    assert found["database"][1].endswith("run: dlo db upgrade")
    assert found["marks.key"][0] == "warning"
    assert found["freeflow.return_to"][0] == "warning"
    assert found["topology"][0] == "ok"
