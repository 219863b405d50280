"""One replay in this process: what is next is done, letter by letter claimed, sent, noted and watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

import structlog

from service.core.bucket import Bucket
from service.core.marks import Seal, read
from service.core.plan import Errand, SentBack, replaying
from service.core.replay import (
    Begin,
    Finish,
    GiveBack,
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
from service.edge.letter import Letter
from service.edge.post import NotSent, NotTaken, Post, Unroutable, Unsendable
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
from service.office.refusals import PATIENCE, Refusals

# How long a job may sleep between two steps: an operator's stop is seen with the next.
STEP = 0.2
WAITING = 1.0
# Where nobody looked for a while dead letters may lie unread: silence says nothing yet. Intake that
# was held up tries again after 5 s at most.
CATCH_UP = timedelta(seconds=6)
# Where RabbitMQ was away its consumers were too: they get their time once more.
WHOLE_WINDOW = timedelta.max

Told = Callable[[ItemState, int], None]
Blind = Callable[[], str]
"""Why a letter that dies now would not be seen; empty while it would be."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How letters are sent: so many at once, and who is told, asked for the time and for what is seen."""

    batch: int
    told: Told
    clock: Clock
    blind: Blind


class Driver:
    """One job in this process: its bucket, and since when its dead letters are seen."""

    def __init__(self, id_: str, book: Book, seal: Seal, manners: Manners, post: Post) -> None:
        self._id, self._book, self._seal, self._batch = id_, book, seal, manners.batch
        self._told, self._clock, self._blind = manners.told, manners.clock, manners.blind
        self._post = post
        self._since, self._catch_up = self._clock(), CATCH_UP
        self._refusals = Refusals()
        self._busy: stages.Busy | None = None
        self._bucket: Bucket | None = None
        self._pause = PATIENCE[0]
        self._ends: dict[int, Exception | None] = {}
        self._log = structlog.get_logger("dlo.replay")

    async def step(self, runner: str, job: Replay, known: Progress) -> float:
        """Do what is next, and say how long there is nothing to do after it."""
        await self.note()
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
            case GiveBack():
                await stages.give_back(self._book, self._id, self._clock())
            case Finish():
                await self._finish(job)
            case never:
                assert_never(never)
        return STEP

    def lost_sight(self, catch_up: timedelta = CATCH_UP) -> None:
        """What died meanwhile may be unread: no window closes before there was time to read it."""
        self._since, self._catch_up = self._clock(), max(self._catch_up, catch_up)

    async def note(self) -> None:
        """What we know is kept until it is written: a ledger that is away makes nothing go out twice."""
        sent = [position for position, fault in self._ends.items() if fault is None]
        lost = {at: str(fault) for at, fault in self._ends.items() if fault is not None}
        if sent:
            await mark_sent(self._book, self._id, sent, self._clock())
            self._written(sent, ItemState.SENT)
        if lost:
            await mark_unroutable(self._book, self._id, lost, self._clock())
            self._written(lost, ItemState.UNROUTABLE)

    def _written(self, positions: Collection[int], result: ItemState) -> None:
        for position in positions:
            del self._ends[position]
        self._tell(result, len(positions))

    async def _begin(self, job: Replay) -> float:
        busy = self._busy if job.state is ReplayState.WAITING else None
        if busy is not None and await stages.is_still(self._book, busy):
            return WAITING
        is_tried = job.ramped_at is not None or job.terms.canary == 0
        state = ReplayState.RUNNING if is_tried else ReplayState.CANARY
        begun = await stages.begin(self._book, self._id, state, self._clock())
        self._busy = begun if isinstance(begun, stages.Busy) else None
        return 0.0 if self._busy is None else WAITING

    async def _finish(self, job: Replay) -> None:
        stopped = job.state is ReplayState.STOPPED
        state = ReplayState.STOPPED if stopped else ReplayState.FINISHED
        await stages.finish(self._book, self._id, state, self._clock())
        self._log.info("ended", action="replay_ended", replay=self._id, state=state.value)

    async def _close_windows(self, job: Replay) -> None:
        now = self._clock()
        if self._blind():
            self.lost_sight(WHOLE_WINDOW)
        if now - self._since >= min(job.terms.watch, self._catch_up):
            quiet = await close_windows(self._book, self._id, now - job.terms.watch, now)
            self._tell(ItemState.QUIET, quiet)

    async def _send(self, runner: str, job: Replay, known: Progress, most: int) -> float:
        now = asyncio.get_running_loop().time()
        bucket = (self._bucket or Bucket(job.terms.rate, now)).filled(now)
        count = min(most, self._batch, bucket.whole)
        letters = await self._next(runner, job, known, count) if count else ()
        self._bucket = bucket.without(len(letters))
        if fault := await self._deliver(job, letters):
            return await self._bear(fault)
        if not letters and count:  # stopped meanwhile, ours no longer, or a queue refuses them
            return self._refusals.wait(now) or STEP
        if letters and job.says != self._refusals.says:
            await stages.say(self._book, self._id, self._refusals.says)
        return min(STEP, self._bucket.until(min(most, self._batch)))

    async def _next(
        self, runner: str, job: Replay, known: Progress, count: int
    ) -> Sequence[Claimed]:
        """Those in doubt first. A queue that refuses its letters holds up no other, but for the canary."""
        held = self._refusals.held(asyncio.get_running_loop().time())
        mine = self._book, self._id, runner, count, self._clock(), held
        if known.in_doubt:
            letters = await in_doubt(*mine)
            if letters or not held or job.state is ReplayState.CANARY:
                return letters
        return await claim(*mine)

    async def _deliver(self, job: Replay, letters: Sequence[Claimed]) -> NotSent | None:
        """Send them all and note what became of each; what is in doubt stays claimed, for later."""
        faults = await asyncio.gather(*(self._mail(job, letter) for letter in letters))
        await self.note()
        return next((fault for fault in faults if fault is not None), None)

    async def _mail(self, job: Replay, claimed: Claimed) -> NotSent | None:
        """Send one, and keep what became of it; a fault that is not this letter's own is returned."""
        try:
            letter, send = self._written_anew(job, claimed)
            await self._post.send(letter, send)
        except NotTaken as refusal:
            now = asyncio.get_running_loop().time()
            self._refusals.refuse(claimed.queue, f"letters are held: {refusal}", now)
        except (Unsendable, Unroutable) as fault:
            self._ends[claimed.position] = fault
        except NotSent as fault:
            return fault
        except Exception as bug:  # noqa: BLE001  # it may have been sent: it stays in doubt
            return NotSent(repr(bug))
        else:
            self._ends[claimed.position], self._pause = None, PATIENCE[0]
            self._refusals.forget(claimed.queue)
        return None

    def _written_anew(self, job: Replay, claimed: Claimed) -> tuple[Letter, SentBack]:
        try:
            return self._errand(job, claimed)
        except Exception as bug:  # no letter may hold up the others
            raise Unsendable(f"it cannot be read: {type(bug).__name__}") from bug

    def _errand(self, job: Replay, claimed: Claimed) -> tuple[Letter, SentBack]:
        letter = letter_from(claimed.body, claimed.headers, claimed.properties)
        replayed = Replayed(self._id, claimed.position, claimed.id)
        mark = marked(replayed, claimed.queue, claimed.body, self._seal)
        is_fresh = job.attempts is Attempts.FRESH
        errand = Errand(claimed.queue, mark, claimed.letter, is_fresh)
        known = read(letter.headers, self._seal)
        return letter, replaying(known, letter.headers, errand, self._seal)

    async def _bear(self, fault: NotSent) -> float:
        self.lost_sight(WHOLE_WINDOW)
        await stages.say(self._book, self._id, f"letters are held: {fault}")
        wait, self._pause = self._pause, min(self._pause * 2, PATIENCE[1])
        return wait

    def _tell(self, result: ItemState, count: int) -> None:
        if count:
            self._told(result, count)
