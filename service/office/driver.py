"""One replay in this process: what is next is done, letter by letter claimed, sent, noted and watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import assert_never

import structlog

from service.core.bucket import Bucket
from service.core.marks import Seal, read
from service.core.plan import Errand, replaying
from service.core.replay import (
    Begin,
    Finish,
    Pause,
    Progress,
    Ramp,
    Send,
    Stop,
    Watch,
    next_step,
)
from service.core.replayed import Replayed, marked
from service.core.states import Attempts, ItemState, ReplayState
from service.edge.kept import letter_from
from service.edge.post import NotSent, Post, Unroutable
from service.flows.desk import Clock
from service.ledger import stages
from service.ledger.book import Book
from service.ledger.claims import (
    Claimed,
    claim,
    close_windows,
    in_doubt,
    mark_sent,
    mark_unroutable,
)
from service.ledger.replays import Replay

# How long a job may sleep between two steps: an operator's stop is seen with the next.
STEP = 0.2
WAITING = 1.0
PATIENCE = 0.5, 2.0
# After a restart the dead letters of a while may lie unread: silence says nothing yet.
CATCH_UP = timedelta(seconds=3)

Told = Callable[[ItemState, int], None]


class Driver:
    """One job in this process: its bucket, and since when it is ours."""

    def __init__(
        self, id_: str, book: Book, seal: Seal, batch: int, told: Told, clock: Clock, post: Post
    ) -> None:
        self._id, self._book, self._seal, self._batch = id_, book, seal, batch
        self._told, self._clock, self._post = told, clock, post
        self._since = clock()
        self._bucket: Bucket | None = None
        self._pause = PATIENCE[0]
        self._ends: dict[int, Unroutable | None] = {}
        self._log = structlog.get_logger("dlo.replay")

    async def step(self, runner: str, job: Replay, known: Progress) -> float:
        """Do what is next, and say how long there is nothing to do after it."""
        await self._note()
        await self._close_windows(job)
        match next_step(job.state, job.wanted, job.terms, known):
            case Begin():
                return await self._begin(job)
            case Send(most):
                return await self._send(runner, job, known, most)
            case Ramp():
                await stages.ramp(self._book, self._id, self._clock())
                return 0.0
            case Pause():
                await stages.rest(self._book, self._id, ReplayState.PAUSED)
            case Stop(reason):
                await stages.stop(self._book, self._id, reason, self._clock())
                self._log.warning("stopped", action="replay_stopped", replay=self._id, why=reason)
            case Watch():
                if job.state is ReplayState.RUNNING:
                    await stages.rest(self._book, self._id, ReplayState.WATCHING)
            case Finish():
                await self._finish(job)
            case never:
                assert_never(never)
        return STEP

    async def _begin(self, job: Replay) -> float:
        is_tried = job.ramped_at is not None or job.terms.canary == 0
        state = ReplayState.RUNNING if is_tried else ReplayState.CANARY
        begun = await stages.begin(self._book, self._id, state, self._clock())
        return 0.0 if isinstance(begun, stages.Begun) else WAITING

    async def _finish(self, job: Replay) -> None:
        stopped = job.state is ReplayState.STOPPED
        state = ReplayState.STOPPED if stopped else ReplayState.FINISHED
        await stages.finish(self._book, self._id, state, self._clock())
        self._log.info("ended", action="replay_ended", replay=self._id, state=state.value)

    async def _close_windows(self, job: Replay) -> None:
        now = self._clock()
        if now - self._since >= min(job.terms.watch, CATCH_UP):
            quiet = await close_windows(self._book, self._id, now - job.terms.watch, now)
            self._tell(ItemState.QUIET, quiet)

    async def _send(self, runner: str, job: Replay, known: Progress, most: int) -> float:
        now = asyncio.get_running_loop().time()
        bucket = (self._bucket or Bucket(job.terms.rate, now)).filled(now)
        count = min(most, self._batch, bucket.whole)
        letters: Sequence[Claimed] = ()
        if count and known.in_doubt:
            letters = await in_doubt(self._book, self._id, count)
        elif count:
            letters = await claim(self._book, self._id, runner, count, self._clock())
        self._bucket = bucket.without(len(letters))
        if fault := await self._deliver(job, letters):
            return await self._bear(fault)
        if not letters and count:
            return STEP  # stopped meanwhile, or ours no longer
        if letters and job.says:
            await stages.say(self._book, self._id, "")
        return min(STEP, self._bucket.until(min(most, self._batch)))

    async def _deliver(self, job: Replay, letters: Sequence[Claimed]) -> NotSent | None:
        """Send them all and note what became of each; what is in doubt stays claimed, for later."""
        faults = await asyncio.gather(*(self._mail(job, letter) for letter in letters))
        for letter, fault in zip(letters, faults, strict=True):
            if not isinstance(fault, NotSent):
                self._ends[letter.position] = fault
        await self._note()
        return next((fault for fault in faults if isinstance(fault, NotSent)), None)

    async def _note(self) -> None:
        """What we know is kept until it is written: a ledger that is away makes nothing go out twice."""
        sent = [position for position, fault in self._ends.items() if fault is None]
        lost = {at: str(fault) for at, fault in self._ends.items() if fault is not None}
        if sent:
            await mark_sent(self._book, self._id, sent, self._clock())
            self._tell(ItemState.SENT, len(sent))
        if lost:
            await mark_unroutable(self._book, self._id, lost, self._clock())
            self._tell(ItemState.UNROUTABLE, len(lost))
        self._ends.clear()

    async def _mail(self, job: Replay, claimed: Claimed) -> NotSent | Unroutable | None:
        letter = letter_from(claimed.body, claimed.headers, claimed.properties)
        replayed = Replayed(self._id, claimed.position, claimed.id)
        mark = marked(replayed, claimed.queue, claimed.body, self._seal)
        is_fresh = job.attempts is Attempts.FRESH
        errand = Errand(claimed.queue, mark, claimed.letter, is_fresh)
        known = read(letter.headers, self._seal)
        try:
            await self._post.send(letter, replaying(known, letter.headers, errand, self._seal))
        except (NotSent, Unroutable) as fault:
            return fault
        self._pause = PATIENCE[0]
        return None

    async def _bear(self, fault: NotSent) -> float:
        await stages.say(self._book, self._id, f"letters are held: {fault}")
        wait, self._pause = self._pause, min(self._pause * 2, PATIENCE[1])
        return wait

    def _tell(self, result: ItemState, count: int) -> None:
        if count:
            self._told(result, count)
