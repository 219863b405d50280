"""A runner at work over a real ledger, with a post that fails as it is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from service.core.marks import LETTER, Seal
from service.core.plan import Send
from service.core.replay import Terms
from service.edge.letter import Letter
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.room import Reception
from service.ledger.book import Book
from service.ledger.filters import Filter
from service.ledger.replay_pages import find
from service.ledger.replays import Draft, Replay
from service.office.driver import Blind, Told
from service.office.replay import Runner
from tests.servers.waiting import eventually

TERMS = Terms(rate=1000, canary=0, stop_percent=10, watch=timedelta(milliseconds=300))
DRAFT = Draft("0" * 15 + "1", "anna", Filter(), {}, TERMS, b"digest")
SHORT = timedelta(milliseconds=600)
BATCH = 10


class Postbox:
    """Takes letters; `before` may refuse one, or hold it."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.before: Callable[[str], Exception | None] = lambda _letter: None
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, _letter: Letter, send: Send) -> None:
        """Sent, or an error says why not."""
        name = str(send.marks[LETTER])
        await self.open.wait()
        if fault := self.before(name):
            raise fault
        self.sent[name] += 1


@asynccontextmanager
async def running(
    book: Book, post: Postbox, told: Told = lambda *_: None, blind: Blind = lambda: ""
) -> AsyncIterator[Runner]:
    """A runner at work; it ends politely."""
    runner = Runner(book, Seal(), batch=BATCH, lasting=SHORT, told=told, blind=blind)
    task = asyncio.ensure_future(runner.run(_reception(post)))
    try:
        yield runner
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _reception(post: Postbox) -> Reception:
    async def mend() -> None:
        """Nothing to mend."""

    return Reception(post, Limits(1), Listeners(), mend)


async def ended(book: Book) -> Replay:
    """Wait until every letter of the job has its result."""

    async def over() -> Replay:
        job = await find(book, DRAFT.id)
        assert isinstance(job, Replay)
        assert job.ended_at is not None, job
        return job

    return await eventually(over, within=15)
