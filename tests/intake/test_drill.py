"""The drill with intake on: three letters end as written, and the dead one is in the ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cli.terminal import dlo
from tests.intake.reading import count, ledger, letters
from tests.kit.broker import clean
from tests.kit.process import Service, environment, running
from tests.servers.waiting import eventually


async def test_the_drill_ends_in_the_ledger(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    given = environment(
        rabbit_url, sqlite_url, DLO_LEDGER__INTAKE="true", DLO_DLQ_PROCESSOR__DRILL="true"
    )
    async with running(Service(given, tmp_path)), ledger(sqlite_url) as book:
        done = await asyncio.to_thread(dlo, tmp_path, "drill", **given)
        assert done.returncode == 0, done.stderr
        await eventually(lambda: count(book), within=5)
        (dead,) = await letters(book)
        assert dead["routing_key"] == "rk.test.fail"
        assert dead["origin_queue"] == "test-fail-queue"
