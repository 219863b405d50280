"""A migrated ledger, watched; and plain SQL beside it, as an operator types it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from typing import cast

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import structlog
from structlog.testing import LogCapture
from structlog.typing import FilteringBoundLogger

from service.ledger.engine import is_sqlite, sqlite_file
from service.ledger.routes import Routes

POLL = timedelta(milliseconds=50)
TIERS = (timedelta(seconds=10), timedelta(seconds=15), timedelta(seconds=20))


async def run_sql(url: str, statement: str) -> None:
    """One statement, by the bare driver."""
    if is_sqlite(url):
        with closing(sqlite3.connect(sqlite_file(url))) as connection, connection:
            connection.execute(statement)
        return
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


class Log:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self._capture = LogCapture()
        level = structlog.make_filtering_bound_logger(0)
        logger = structlog.wrap_logger(None, processors=[self._capture], wrapper_class=level)
        self.logger = cast(FilteringBoundLogger, logger)

    def lines(self, action: str) -> list[str]:
        """What was said of this."""
        return [str(e["event"]) for e in self._capture.entries if e["action"] == action]


@asynccontextmanager
async def watched(url: str, log: Log) -> AsyncIterator[Routes]:
    """Routes with their watch running."""
    routes = Routes(url, poll=POLL, tiers=TIERS, log=log.logger)
    watch = asyncio.create_task(routes.watch())
    try:
        yield routes
        assert not watch.done(), "the watch never ends by itself"
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await routes.close()
