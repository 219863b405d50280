"""The relay: takes letters out of the outbox, has RabbitMQ confirm them, and marks them as sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import structlog

from service.core.marks import LETTER
from service.core.plan import Address, Send
from service.edge.carry_out import Mend
from service.edge.post import NotSent, Post, Unroutable
from service.flows.desk import Clock, utc_now
from service.flows.room import Reception
from service.flows.settlement.letters import for_the_post
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.outbox import Claimed, claim, forget, mark_sent, release, renew

BATCH = 100
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
KEPT = timedelta(days=1)
SWEEP = timedelta(hours=1)


class Relay:
    """Sends what the outbox holds, for as long as the service runs, whatever is away meanwhile.

    A letter is marked after it was confirmed: a relay that dies in between has it sent again, with
    the same id, and the workers take the second one for what it is.
    """

    def __init__(
        self, book: Book, *, lease: timedelta, poll: timedelta, clock: Clock = utc_now
    ) -> None:
        self._book, self._lease, self._poll, self._clock = book, lease, poll, clock
        self._news = asyncio.Event()
        self._swept: datetime | None = None
        self._log = structlog.get_logger("dlo.outbox")

    def wake(self) -> None:
        """There is a letter: do not wait for the next look."""
        self._news.set()

    async def run(self, reception: Reception) -> None:
        """Until cancelled. Other processes' letters are found by looking every so often."""
        pause = FIRST_PAUSE
        while True:
            self._news.clear()
            try:
                more = await self.deliver(reception.post, reception.mend) == BATCH
            except Exception as fault:  # noqa: BLE001  # an outbox that silently stops is worse
                if pause > FIRST_PAUSE:  # once is a hiccup, as when a fresh database is being made
                    self._miss(fault, pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                pause = FIRST_PAUSE
                if not more:
                    await self._wait()

    async def deliver(self, post: Post, mend: Mend) -> int:
        """Send one batch and say how many it was; what could not be sent is left for the next time."""
        now = self._clock()
        await self._sweep(now)
        letters = await claim(self._book, now, now + self._lease, BATCH)
        async with self._holding(letters):
            faults = await asyncio.gather(*(self._send(letter, post, mend) for letter in letters))
        sent = [letter for letter, fault in zip(letters, faults, strict=True) if fault is None]
        if sent:
            await mark_sent(self._book, sent, self._clock())
        await self._give_back(letters, faults)
        return len(sent)

    @asynccontextmanager
    async def _holding(self, letters: Sequence[Claimed]) -> AsyncIterator[None]:
        """Renew the claim while we wait: a broker under an alarm confirms when it is over, and a
        second relay that took the letters for abandoned would send them twice."""
        renewing = asyncio.ensure_future(self._renew(letters)) if letters else None
        try:
            yield
        finally:
            if renewing is not None:
                renewing.cancel()

    async def _renew(self, letters: Sequence[Claimed]) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            with suppress(LedgerAway):
                await renew(self._book, letters, self._clock() + self._lease)

    async def _send(self, letter: Claimed, post: Post, mend: Mend) -> NotSent | Unroutable | None:
        outgoing = letter.outgoing
        to = Address(outgoing.exchange, outgoing.routing_key)
        try:
            await post.send(for_the_post(outgoing), Send(to, {LETTER: outgoing.letter}))
        except Unroutable as fault:
            await mend()
            return fault
        except NotSent as fault:
            return fault
        return None

    async def _give_back(
        self, letters: Sequence[Claimed], faults: Sequence[NotSent | Unroutable | None]
    ) -> None:
        unsent = [letter for letter, fault in zip(letters, faults, strict=True) if fault]
        if unsent:
            await release(self._book, unsent)
            raise next(fault for fault in faults if fault)

    async def _sweep(self, now: datetime) -> None:
        if self._swept is None or now - self._swept > SWEEP:
            await forget(self._book, now - KEPT)
            self._swept = now

    def _miss(self, fault: Exception, pause: float) -> None:
        again = f"letters wait in the outbox, trying again in {pause:g} s"
        self._log.warning(f"{fault}; {again}", action="outbox_waits")

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._poll.total_seconds()):
                await self._news.wait()
        except TimeoutError:
            return
