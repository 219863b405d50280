"""Fixtures: the service on a clean broker for a module's tests, and a foreign team for each test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kit.broker import FOREIGN, channel_to, clean
from tests.kit.lanes import LANE, LANES
from tests.kit.process import Service, environment
from tests.kit.shop import Shop, open_shop


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """What a module sets differently; modules define their own."""
    return {}


@pytest.fixture(scope="module")
def lane(request: pytest.FixtureRequest) -> str:
    """The lane the letters take: the default, unless a module asks for both with `BOTH_LANES`."""
    named: str = getattr(request, "param", LANES[0])
    return named


@pytest.fixture(scope="module")
def service(
    rabbit_url: str,
    settings: dict[str, str],
    lane: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    """A running service with waits of tenths of a second and an SQLite ledger."""
    folder = tmp_path_factory.mktemp("service")
    service = Service(
        environment(rabbit_url, sqlite_in(folder), **{LANE: lane}, **settings), folder
    )
    asyncio.run(clean(rabbit_url))
    try:
        asyncio.run(service.start())
        yield service
    finally:
        service.kill()
    assert "Traceback" not in service.said()


@pytest.fixture
async def shop(rabbit_url: str, service: Service) -> AsyncIterator[Shop]:
    """The foreign team's side, fresh; nothing of an earlier test is in dlq-queue."""
    async with channel_to(rabbit_url) as channel:
        for name in FOREIGN:
            await channel.queue_delete(name)
        await (await channel.get_queue("dlq-queue")).purge()
        yield await open_shop(channel, service.environment.get("DLO_QUEUES__TYPE", "classic"))


def sqlite_in(folder: Path) -> str:
    """An SQLite ledger in this folder."""
    return f"sqlite+aiosqlite:///{folder / 'dlo.db'}"
