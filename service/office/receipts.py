"""Receipts: handlers under our middleware tell that they took a letter which a replay had sent."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog
from faststream import AckPolicy
from faststream.rabbit import Channel, QueueType, RabbitBroker, RabbitMessage

from service.core.marks import Seal
from service.core.plan import Settle
from service.core.replayed import Replayed, received
from service.core.states import ItemState
from service.edge.carry_out import Unsettled, settle
from service.edge.pages import describe
from service.edge.reading import unopened
from service.flows.desk import Clock, utc_now
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.results import note_handled
from service.office import receipt_page
from service.office.driver import Told
from service.topology.receipts import receipts_queue

TOGETHER = 200
LINGER = 0.05
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0


class Receipts:
    """Notes them many at a time, and acknowledges them after that; a forged one is let go."""

    def __init__(
        self, book: Book, seal: Seal, told: Told = lambda *_: None, clock: Clock = utc_now
    ) -> None:
        self._book, self._seal, self._told, self._clock = book, seal, told, clock
        self._waiting: list[tuple[Replayed, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("dlo.receipts")

    async def take(self, message: RabbitMessage) -> None:
        """One receipt."""
        raw = message.raw_message
        found = received(raw.headers, self._seal)
        if found is None:
            self._log.warning("a receipt that our key did not sign", action="receipt_refused")
        else:
            await self._noted(found)
        with suppress(Unsettled):
            await settle(Settle.ACK, raw)

    async def _noted(self, receipt: Replayed) -> None:
        noted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((receipt, noted))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())
        await noted

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(LINGER)
            batch, self._waiting = self._waiting, []
            try:
                await self._note([receipt for receipt, _ in batch])
            except Exception as bug:  # noqa: BLE001  # best effort: receipts that cannot be noted are let go
                self._log.error("receipts are lost", action="receipts_lost", error=repr(bug))
            for _, noted in batch:
                if not noted.done():
                    noted.set_result(None)

    async def _note(self, receipts: list[Replayed]) -> None:
        """Until they are noted; a ledger that is away only makes them wait in their queue."""
        pause = FIRST_PAUSE
        while True:
            try:
                count = await note_handled(self._book, receipts, self._clock())
            except LedgerAway as away:
                self._log.warning(f"{away}; receipts wait", action="receipts_wait")
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                if count:
                    self._told(ItemState.HANDLED, count)
                return


def subscribe(broker: RabbitBroker, receipts: Receipts, kind: QueueType) -> None:
    """The office's own subscriber."""
    queue = receipts_queue(kind)
    broker.subscriber(
        queue,
        channel=Channel(prefetch_count=TOGETHER, on_return_raises=True),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
        decoder=unopened,
        title=queue.name,
        description=receipt_page.RECEIPTS_QUEUE,
    )(receipts.take)
    describe(broker, receipt_page.CHAPTER)
