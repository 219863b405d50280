"""The embedded ledger migrates itself; a server's schema is its owner's."""

from __future__ import annotations

import asyncio

import structlog

from service.ledger.away import LedgerAway
from service.ledger.engine import is_sqlite
from service.ledger.routes import Routes
from service.ledger.schema import upgrade

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0


async def keep_current(url: str, routes: Routes) -> None:
    """Keep the routes current, on the newest schema where it is ours to make."""
    if is_sqlite(url) and not await _migrated(url, FIRST_PAUSE):
        # Whoever reads the ledger says meanwhile what is wrong with it.
        await asyncio.gather(_migrate(url), routes.watch())
    await routes.watch()


async def _migrate(url: str) -> None:
    pause, is_done = FIRST_PAUSE, False
    while not is_done:
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
        is_done = await _migrated(url, pause)


async def _migrated(url: str, pause: float) -> bool:
    try:
        await upgrade(url)
    except LedgerAway as away:
        log = structlog.get_logger("dlo.ledger")
        log.warning(f"{away}; trying again in {pause:g} s", action="not_migrated")
        return False
    return True
