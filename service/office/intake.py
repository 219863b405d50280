"""Intake: dead letters out of their queues into the ledger, many in one transaction, then acknowledged.

Database away: nothing is acknowledged, and no more is taken than `prefetch` letters a queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import structlog

from service.ledger.away import LedgerAway
from service.ledger.blame import named
from service.office.inquest import Source
from service.office.intake_desk import Desk
from service.office.taker import Taker

WATCH_SECONDS = 2.0
Adopted = Callable[[], Awaitable[tuple[str, ...]]]


class Intake:
    """A taker for every queue; those adopted while we run come and go."""

    def __init__(
        self, desk: Desk, fixed: Iterable[Source], adopted: Adopted, ours: frozenset[str]
    ) -> None:
        self._desk, self._adopted, self._ours = desk, adopted, ours
        self._fixed = {source.queue: source for source in fixed}
        self._takers: dict[str, Taker] = {}
        self._named: tuple[str, ...] = ()
        self._refused: set[str] = set()
        self._watching: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("dlo.intake")

    @property
    def held(self) -> str:
        """Why letters of some queue are not filed; empty while they are."""
        return next((taker.held for taker in self._takers.values() if taker.held), "")

    @property
    def fixed(self) -> frozenset[str]:
        """Queues of our own flows."""
        return frozenset(self._fixed)

    def wrong_with(self, queue: str) -> str:
        """Why letters of this queue are not filed; empty while they are, or it is not taken yet."""
        taker = self._takers.get(queue)
        return taker.held if taker is not None else ""

    def start(self) -> None:
        """Take in what comes, until stopped."""
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Take no more; what is in our hands is filed where the database lets us."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        takers, self._takers = tuple(self._takers.values()), {}
        await asyncio.gather(*(taker.stop() for taker in takers))

    async def _watch(self) -> None:
        while True:
            try:
                self._set(await self._wanted())
            except Exception as fault:  # noqa: BLE001  # or no queue would be adopted any more
                says = "adopted queues could not be looked at"
                self._log.error(says, action="intake_watch", why=named(fault))
            await asyncio.sleep(WATCH_SECONDS)

    async def _wanted(self) -> dict[str, Source]:
        with suppress(LedgerAway):  # then those that we know of
            self._named = await self._adopted()
        for queue in self._named:
            if queue in self._ours and queue not in self._fixed and queue not in self._refused:
                self._refused.add(queue)
                says = f"{queue} is a queue of the service itself, and cannot be adopted"
                self._log.warning(says, action="not_adopted", queue=queue)
        adopted = {queue: Source(queue) for queue in self._named if queue not in self._ours}
        return adopted | self._fixed

    def _set(self, wanted: dict[str, Source]) -> None:
        for queue in self._takers.keys() - wanted.keys():
            taker = self._takers.pop(queue)
            taker.leave()
        for queue in wanted.keys() - self._takers.keys():
            self._takers[queue] = Taker(self._desk, wanted[queue])
            self._takers[queue].start()
