"""The database goes away in mid-flow: letters do not notice, and its news are read when it is back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from deploy.local.postgres import Server
from service.ledger.schema import upgrade
from tests.crash.office import office
from tests.crash.traffic import Traffic, ending, traffic
from tests.kit.process import Service
from tests.servers.waiting import eventually

OUTAGE = 10.0
BATCH = 20
LATE = 2.0  # seconds for a retry of a tenth of a second: nobody waits for the database


async def test_a_database_that_is_killed_changes_nothing_for_letters(
    postgres: Server, postgres_url: str, rabbit_url: str, tmp_path: Path
) -> None:
    await upgrade(postgres_url)
    insert(postgres, postgres_url, "order.created", 2)
    async with (
        traffic(rabbit_url) as letters,
        ending(office(rabbit_url, postgres_url, tmp_path, DLO_ROUTES="{}")) as service,
    ):
        await service.start()
        await letters.send(BATCH)
        try:
            postgres.kill()
            slowest = await flows(letters, OUTAGE)
            await eventually(lambda: says_away(service), within=5)
        finally:
            postgres.start()
        assert slowest < LATE
        insert(postgres, postgres_url, "order.paid", 2)
        await eventually(lambda: '"routes": 2' in service.said(), within=15)
        await eventually(service.is_ready, within=5)
        await letters.send(BATCH, key="order.paid")
        report = await letters.ends(service)
        print(f"slowest retry without a database {slowest:.2f} s: {report}")
        report.demand(most=0)
        hopeless = {letter for letter in letters.checker.sent if int(letter) % 10 == 0}
        assert letters.checker.dead.keys() == hopeless, "dead-lettered for the database's sake"


async def flows(letters: Traffic, seconds: float) -> float:
    """Keep letters coming for so long; how long the slowest batch took to be retried."""
    loop, slowest = asyncio.get_running_loop(), 0.0
    until = loop.time() + seconds
    while loop.time() < until:
        slowest = max(slowest, await letters.passes(BATCH, within=10))
    return slowest


def says_away(service: Service) -> bool:
    """`/readyz` names the database, and what holds meanwhile."""
    status, parts = service.get("/readyz")
    assert status == 503
    database: dict[str, Any] = parts["database"]
    return (
        parts["rabbitmq"]["ok"]
        and not database["ok"]
        and "PostgreSQL" in database["says"]
        and "last known routes in use" in database["says"]
    )


def insert(postgres: Server, url: str, name: str, retries: int) -> None:
    """As an operator types it."""
    row = f"INSERT INTO dlq_event_config (name, max_retries) VALUES ('{name}', {retries})"
    postgres.query(row, url.rpartition("/")[2])
