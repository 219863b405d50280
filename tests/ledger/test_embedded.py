"""The embedded ledger comes to its newest schema, also where the first try fails."""

from __future__ import annotations

import asyncio

import pytest

from service import embedded
from service.ledger.away import LedgerAway
from service.ledger.routes import Routes
from service.ledger.schema import current, newest, upgrade
from tests.ledger.conftest import POLL, TIERS, Log
from tests.servers.waiting import eventually


async def test_a_ledger_that_was_locked_at_the_start_is_migrated_later(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def locked_at_first(url: str) -> str | None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise LedgerAway("database is locked")
        return await upgrade(url)

    monkeypatch.setattr(embedded, "upgrade", locked_at_first)
    routes = Routes(sqlite_url, poll=POLL, tiers=TIERS, log=Log().logger)
    keeping = asyncio.create_task(embedded.keep_current(sqlite_url, routes))
    try:
        await eventually(routes.loaded.is_set, within=10)
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await routes.close()
    assert (tries, await current(sqlite_url)) == (3, newest())
