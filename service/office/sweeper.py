"""The sweeper: keeps the ledger from growing for ever, and the figures of what is parked current."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from service.ledger.away import LedgerAway
from service.ledger.blame import named
from service.ledger.book import Book
from service.ledger.parked import Parked, parked
from service.ledger.retention import (
    AT_ONCE,
    DISCARDED,
    DONE,
    forget,
    forget_causes,
    forget_counts,
    forget_hours,
    forget_replays,
)
from service.office.intake_desk import utc_now

LOOK_SECONDS = 5.0
SWEEP_SECONDS = 600.0
HOURS_KEPT = timedelta(days=90)
NONE_YET = Parked()


@dataclass(slots=True)
class Sweeper:
    """Runs beside the flows; a database that is away is asked again."""

    book: Book
    retention: timedelta
    keep_discarded: timedelta
    clock: Callable[[], datetime] = utc_now
    parked: Parked = NONE_YET
    """As it was when last looked at."""

    async def run(self) -> None:
        """Look every few seconds, sweep every few minutes, until cancelled."""
        loop, due = asyncio.get_running_loop(), 0.0
        while True:
            try:
                self.parked = await parked(self.book)
                if loop.time() >= due:
                    await self.sweep()
                    due = loop.time() + SWEEP_SECONDS
            except LedgerAway:
                pass  # /readyz says so already
            except Exception as fault:  # noqa: BLE001  # or the ledger grows for ever
                log = structlog.get_logger("dlo.ledger")
                log.error("the ledger was not swept", action="not_swept", why=named(fault))
            await asyncio.sleep(LOOK_SECONDS)

    async def sweep(self) -> int:
        """Forget what is past its time; how many letters."""
        now, gone = self.clock(), 0
        for states, kept in ((DONE, self.retention), (DISCARDED, self.keep_discarded)):
            gone += await _all(partial(forget, self.book, states, now - kept))
        await _all(partial(forget_counts, self.book))
        await _all(partial(forget_causes, self.book, now - self.retention))
        await _all(partial(forget_replays, self.book, now - self.retention))
        await forget_hours(self.book, now - HOURS_KEPT)
        if gone:
            log = structlog.get_logger("dlo.ledger")
            log.info("letters forgotten", action="letters_forgotten", letters=gone)
        return gone

    def oldest(self) -> float:
        """Seconds since the oldest parked letter was buried; 0 where there is none."""
        since = self.parked.oldest
        return (self.clock() - since).total_seconds() if since is not None else 0.0


async def _all(some: Callable[[], Awaitable[int]]) -> int:
    """A few at a time until there are no more; how many."""
    gone = few = await some()
    while few >= AT_ONCE:
        await asyncio.sleep(0.05)  # letters that come are more urgent
        few = await some()
        gone += few
    return gone
