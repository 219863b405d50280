"""The routes in memory: a snapshot of `dlq_event_config`, kept current, never asked of the database."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from structlog.typing import FilteringBoundLogger

from service.core.route import RouteBook
from service.ledger.changes import changes
from service.ledger.engine import open_engine
from service.ledger.reaching import place, reaching
from service.ledger.rows import Row, read
from service.ledger.tables import ROUTES

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0


@dataclass(frozen=True, slots=True)
class Up:
    """The snapshot is current."""


@dataclass(frozen=True, slots=True)
class Away:
    """The database cannot be used; the snapshot is the last one known."""

    since: datetime
    why: str


State = Up | Away


def _now() -> datetime:
    return datetime.now(UTC)


class Routes:
    """The last routes read, and whether they can be trusted to be current."""

    def __init__(
        self,
        url: str,
        *,
        poll: timedelta,
        tiers: tuple[timedelta, ...],
        log: FilteringBoundLogger,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.book = RouteBook()
        self.state: State = Away(now(), f"{place(url)} has not been read yet")
        self.loaded = asyncio.Event()
        self._url, self._poll, self._tiers, self._log, self._now = url, poll, tiers, log, now
        self._engine = open_engine(url)
        self._complaints: frozenset[str] = frozenset()

    async def load(self) -> None:
        """Read the table now; raises LedgerAway and keeps the last snapshot where that fails."""
        with reaching(self._url):
            async with self._engine.connect() as connection:
                rows = [
                    Row(*row)
                    for row in await connection.execute(select(ROUTES).order_by(ROUTES.c.id))
                ]
        self._take(rows)

    async def watch(self) -> None:
        """Keep the snapshot current until cancelled; a database that is away is tried again and again."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with aclosing(changes(self._url, self._poll)) as news:
                    async for _ in news:
                        await self.load()
                        pause = FIRST_PAUSE
            except Exception as away:  # noqa: BLE001  # routes that silently age are worse than any fault
                self._miss(str(away) or repr(away), pause)
                await self._engine.dispose()  # what it holds leads to the old server or file
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def close(self) -> None:
        """Give the connections back."""
        await self._engine.dispose()

    def _take(self, rows: list[Row]) -> None:
        reading = read(rows, self._tiers)
        for complaint in reading.complaints:
            if complaint not in self._complaints:
                self._log.warning(complaint, action="route_row_ignored")
        if reading.book != self.book or not self.loaded.is_set() or isinstance(self.state, Away):
            self._log.info("routes read", action="routes_read", routes=len(rows))
        self._complaints = frozenset(reading.complaints)
        self.book, self.state = reading.book, Up()
        self.loaded.set()

    def _miss(self, why: str, pause: float) -> None:
        since = self.state.since if isinstance(self.state, Away) else self._now()
        self.state = Away(since, why)
        self._log.warning(f"{why}; trying again in {pause:g} s", action="database_away")
