"""A taker: one queue's dead letters, batch by batch, read while the batch before them is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import structlog

from service.edge import wire
from service.edge.sentences import place
from service.edge.wire import Batch, Delivered
from service.ledger.away import InDoubt, LedgerAway
from service.ledger.blame import named, refuses_a_row
from service.ledger.burial import Burial
from service.ledger.filing import Filed, file
from service.office.inquest import Source
from service.office.intake_desk import WRITTEN_AT_ONCE, Desk

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
NOT_FOUND, NO_ACCESS = 404, 403
PAUSE_OF_MANY = 30.0
BREATH = 40
"""Letters read at a stretch: the loop belongs to other letters too."""


class TooManyAside(Exception):
    """Letters that cannot be filed leave no room for others: all go back, and are tried again later."""


class Taker:
    """Takes letters from one queue for as long as it is started."""

    def __init__(self, desk: Desk, source: Source) -> None:
        self._desk, self._source = desk, source
        self._log = structlog.get_logger("dlo.intake").bind(queue=source.queue, flow=source.flow)
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._line: wire.Intake | None = None
        self._aside: list[Delivered] = []
        self._crowded = asyncio.Event()
        self._trouble = self._said = ""

    @property
    def held(self) -> str:
        """Why letters are not filed; a queue of somebody else's that is not there holds up nothing."""
        if self._aside:
            says = f"{len(self._aside)} letters cannot be filed and stay there unacknowledged"
            return f"{self._source.queue}: {says}; the log says why"
        lost = self._line.trouble if self._line is not None else None
        if lost is not None and not self._trouble and not self._source.is_adopted:
            return f"letters of {self._source.queue} cannot be taken: {lost}"
        return self._trouble

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    def leave(self) -> None:
        """End without waiting for it."""
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """End: the batch in our hands is filed where the database lets us, the rest goes back."""
        self.leave()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            line = wire.Intake(
                self._desk.url,
                self._source.queue,
                prefetch=self._desk.prefetch,
                pause=self._desk.pause,
            )
            try:
                async with line:
                    self._log.info("taking letters in", action="intake_open")
                    self._trouble, self._said, pause, self._line = "", "", FIRST_PAUSE, line
                    self._aside.clear()  # a closed connection gave them back
                    self._crowded.clear()
                    await self._take(line)
            except TooManyAside:  # they go back with the connection
                pause = PAUSE_OF_MANY
            except Exception as fault:  # noqa: BLE001  # nobody else would take this queue's letters
                self._away(fault, pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _away(self, fault: Exception, pause: float) -> None:
        queue, again = self._source.queue, f"trying again in {pause:g} s"
        code = fault.code if isinstance(fault, wire.Refused) else 0
        if code == NOT_FOUND:
            says = f"there is no queue {queue} on {place(self._desk.url)}"
        else:
            says = f"letters of {queue} cannot be taken from {place(self._desk.url)}: {fault}"
        if says != self._said:  # once, not at every try
            self._log.warning(f"{says}; {again}", action="intake_away")
        self._said = says
        self._trouble = "" if code == NOT_FOUND and self._source.is_adopted else says

    async def _take(self, line: wire.Intake) -> None:
        """A batch gathers while one is read and those before them are written."""
        filing: list[asyncio.Task[None]] = []
        last: set[str] = set()
        try:
            while True:
                batch = await self._next(line)
                burials = await self._read(batch)
                if len(filing) >= WRITTEN_AT_ONCE:
                    await asyncio.shield(filing.pop(0))
                ids = {burial.id for burial in burials}
                if filing and not ids.isdisjoint(last):
                    await asyncio.shield(filing[-1])  # two burials of one letter: in their order
                before, last = filing[-1] if filing else None, ids
                filing.append(asyncio.create_task(self._file(batch, burials, before)))
        finally:
            await asyncio.gather(*filing)

    async def _next(self, line: wire.Intake) -> Batch:
        """The next batch; none can come where the letters set aside are all that we may hold."""
        linger = self._desk.linger.total_seconds()
        taking = asyncio.ensure_future(line.take(self._desk.batch, linger))
        crowded = asyncio.ensure_future(self._crowded.wait())
        try:
            await asyncio.wait((taking, crowded), return_when=asyncio.FIRST_COMPLETED)
            if crowded.done():
                raise TooManyAside
            return taking.result()
        finally:
            taking.cancel()
            crowded.cancel()

    async def _read(self, batch: Batch) -> list[Burial]:
        now, burials = self._desk.clock(), []
        for number, taken in enumerate(batch.letters, 1):
            burials.append(self._hold(taken, now))
            if not number % BREATH:
                await asyncio.sleep(0)
        return burials

    def _hold(self, taken: Delivered, now: datetime) -> Burial:
        try:
            return self._desk.inquest.hold(taken, self._source, now)
        except Exception as bug:  # noqa: BLE001  # no letter may hold up the others
            why = type(bug).__name__  # its words may quote the letter's body
            self._log.error("a letter could not be read", action="letter_unread", why=why)
            return self._desk.inquest.bare(taken, self._source, now, why)

    async def _file(
        self, batch: Batch, burials: Sequence[Burial], before: asyncio.Task[None] | None
    ) -> None:
        """Until they are filed, or are not ours any more; settled after the batch before. Never raises."""
        try:
            filed = await self._write(batch, burials)
        except Exception as fault:  # noqa: BLE001  # the database answers, and will not have one of them
            says = "letters are filed one by one"
            self._log.warning(says, action="intake_one_by_one", why=named(fault))
            await self._one_by_one(batch, burials)
            return
        if before is not None:
            await asyncio.shield(before)
        if filed is not None:
            self._settle(batch.letters, filed)

    async def _write(self, batch: Batch, burials: Sequence[Burial]) -> Filed | None:
        """None where the letters are not ours any more; raises for what the database will not have."""
        pause = FIRST_PAUSE
        while batch.letters[-1].consumer.is_open:
            try:
                async with self._desk.writing:
                    filed = await file(self._desk.book, burials, self._desk.clock())
            except LedgerAway as away:
                if refuses_a_row(away):
                    raise
                if isinstance(away, InDoubt):  # they may be filed, and sent back by now
                    burials = [burial._replace(redelivered=True) for burial in burials]
                self._hold_up(str(away))
                if self._stopping.is_set():
                    return None
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._stopping.wait()
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                self._go_on()
                return filed
        return None

    async def _one_by_one(self, batch: Batch, burials: Sequence[Burial]) -> None:
        for taken, burial in zip(batch.letters, burials, strict=True):
            alone = Batch((taken,))
            try:
                filed = await self._alone(alone, burial)
            except Exception as fault:  # noqa: BLE001  # not even its bytes: it stays in its queue
                self._set_aside(taken, burial, fault)
            else:
                if filed is not None:
                    self._settle((taken,), filed, each=True)

    def _set_aside(self, taken: Delivered, burial: Burial, fault: Exception) -> None:
        """Leave a letter unacknowledged; the others go on, as long as they have room."""
        taken.lay_aside()
        self._aside = [letter for letter in (*self._aside, taken) if letter.consumer.is_open]
        if len(self._aside) > self._desk.prefetch // 2:
            self._crowded.set()
        says = "a letter cannot be filed; it stays in its queue, unacknowledged"
        self._log.error(says, action="letter_set_aside", letter=burial.letter, why=named(fault))

    async def _alone(self, batch: Batch, burial: Burial) -> Filed | None:
        try:
            return await self._write(batch, [burial])
        except Exception as fault:  # noqa: BLE001  # then without what was read of it
            now = self._desk.clock()
            bare = self._desk.inquest.bare(batch.letters[0], self._source, now, named(fault))
            return await self._write(batch, [bare])

    def _settle(self, letters: Sequence[Delivered], filed: Filed, *, each: bool = False) -> None:
        """Acknowledge; one by one where letters that were set aside must not go with the others."""
        self._desk.counter.filed(self._source.flow, filed)
        self._aside = [letter for letter in self._aside if letter.consumer.is_open]
        if self._aside or each:
            for letter in letters:
                letter.consumer.acknowledge(letter.tag, upto=False)
        else:
            Batch(tuple(letters)).acknowledge()

    def _hold_up(self, why: str) -> None:
        says = f"letters of {self._source.queue} wait in their queue: {why}"
        if says != self._trouble:
            self._log.warning(says, action="intake_held")
        self._trouble = says

    def _go_on(self) -> None:
        if self._trouble:
            self._log.info("letters are filed again", action="intake_open")
        self._trouble = ""
