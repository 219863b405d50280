"""The relay: every letter that comes gets its verdict, its plan is carried out, and then it is settled.

Send all, confirmed and routed; then settle once, last. No task, future or coroutine for a letter:
its job goes from step to step as the broker answers.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping
from datetime import timedelta

import structlog

from service.core.plan import Plan, Settle
from service.edge.carry_out import Mend
from service.edge.post import NotTaken, Trouble, Unroutable
from service.edge.wire.confirmed import Fate
from service.edge.wire.consumer import Consumer, Take
from service.edge.wire.delivered import Delivered
from service.edge.wire.errors import Doubtful
from service.edge.wire.job import Clerk, Errand, Job
from service.edge.wire.posting import Posting
from service.edge.wire.window import Stage, Window

SHORTEST_WAIT, LONGEST_WAIT = 0.2, 2.0
GIVE_BACK = Plan(Settle.REQUEUE, pause=timedelta(seconds=1))
"""For a letter that we cannot even bury: back into its queue, slowly."""


class Relay:
    """Carries out plans. A send that fails, and to which the plan has no answer, is tried again for as
    long as the letter is ours: nothing is settled meanwhile."""

    def __init__(self, posting: Posting, clerks: Mapping[str, Clerk], mend: Mend) -> None:
        self._posting, self._clerks, self._mend = posting, clerks, mend
        self._windows: dict[Consumer, Window] = {}
        self._held: list[Job] = []
        self._doubted: deque[Job] = deque()
        self._alone: Job | None = None
        self._troubled: set[Job] = set()
        self._wait = SHORTEST_WAIT
        self._is_broken = False
        self._trying: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._log = structlog.get_logger("dlo.wire")

    @property
    def takes(self) -> dict[str, Take]:
        """What is done with a letter of each queue."""
        return dict.fromkeys(self._clerks, self.take)

    @property
    def in_hand(self) -> int:
        """Letters that came and are not settled."""
        return sum(len(window.jobs) for window in self._windows.values())

    @property
    def held(self) -> int:
        """Letters whose send is being tried again."""
        return len(self._troubled)

    @property
    def trouble(self) -> Trouble | None:
        """Since when the letter that is held longest is held, and why; None where none is."""
        held = (job.held for job in self._troubled if job.is_ours and job.held is not None)
        return min(held, key=lambda trouble: trouble.since, default=None)

    def take(self, delivered: Delivered) -> None:
        """A letter came."""
        consumer = delivered.consumer
        window = self._windows.get(consumer)
        if window is None:
            window = self._windows[consumer] = Window(consumer)
        job = Job(delivered, self._clerks[consumer.queue], window)
        window.jobs.append(job)
        try:
            self._begin(job, job.clerk.attend(delivered))
        except Exception as bug:  # noqa: BLE001  # whatever it is, the letter is kept
            self._stumble(job, bug)

    def forget(self, consumer: Consumer, why: Exception) -> None:
        """A consumer is gone, and the broker has taken back what it brought."""
        window = self._windows.pop(consumer, None)
        self._troubled = {job for job in self._troubled if job.window is not window}
        if window is not None and (left := len(window.unfinished)):
            self._clerks[consumer.queue].taken_back(left, str(why))

    def try_again(self) -> None:
        """Something is better than it was: try held letters at once."""
        self._wake.set()

    async def finished(self) -> None:
        """Wait until nothing is in our hands."""
        while self.in_hand:  # noqa: ASYNC110  # asked once, at the end: no event for every letter
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Try nothing any more."""
        if self._trying is not None:
            self._trying.cancel()

    def _begin(self, job: Job, errand: Errand) -> None:
        job.errand = errand
        self._carry_out(job, errand.plan)

    def _carry_out(self, job: Job, plan: Plan) -> None:
        job.plan, job.step = plan, 0
        if plan.pause:
            loop = job.delivered.consumer.connection.loop
            loop.call_later(plan.pause.total_seconds(), self._try_job, job)
        else:
            self._next(job)

    def _next(self, job: Job) -> None:
        """The next send of the plan, or its end."""
        plan, errand = job.plan, job.errand
        assert plan is not None
        if errand is None or job.step == len(plan.sends):
            self._end(job, plan)
            return
        send = plan.sends[job.step]
        properties = errand.parcel.dressed(send.marks, self._posting.room)
        post = self._posting.send_alone if job is self._alone else self._posting.send
        post(send.to, properties, errand.parcel.body, lambda f: self._sent(job, f))

    def _sent(self, job: Job, fate: Fate) -> None:
        """The broker's word on a send. A bug here must not take its neighbours along."""
        if job is self._alone:
            self._alone = None
            self._wake.set()  # the next letter in doubt
        if not job.is_ours:
            return
        try:
            self._go_on(job, fate)
        except Exception as bug:  # noqa: BLE001  # whatever it is, the letter is kept
            self._stumble(job, bug)

    def _go_on(self, job: Job, fate: Fate) -> None:
        plan = job.plan
        assert plan is not None
        if fate is None:
            if job.stage is Stage.HELD:
                self._let_go(job)
            job.step += 1
            self._next(job)
        elif isinstance(fate, NotTaken) and plan.later is not None:
            self._carry_out(job, plan.later)
        elif isinstance(fate, Unroutable) and plan.otherwise is not None:
            self._carry_out(job, plan.otherwise)
        else:
            self._hold(job, fate)

    def _let_go(self, job: Job) -> None:
        job.stage, job.held, self._wait = Stage.WORKING, None, SHORTEST_WAIT
        self._troubled.discard(job)

    def _end(self, job: Job, plan: Plan) -> None:
        self._alone = None if job is self._alone else self._alone
        if job.is_ours:
            self._troubled.discard(job)
            job.window.finish(job, plan.settle)
            if job.errand is not None:
                job.errand.tell(plan)

    def _stumble(self, job: Job, bug: Exception) -> None:
        """A letter on which our own code stumbles goes to people; and if even that fails, back."""
        if job.stage >= Stage.DONE:
            return  # it is settled: nothing more may be done with it
        if not job.has_stumbled:
            job.has_stumbled = True
            try:
                self._begin(job, job.clerk.stumbled(job.delivered, bug))
                return
            except Exception as again:  # noqa: BLE001  # as above
                bug = again
        job.clerk.taken_back(1, f"our own fault: {bug!r}")
        job.errand = None
        self._carry_out(job, GIVE_BACK)

    def _hold(self, job: Job, fate: Fate) -> None:
        job.stage = Stage.HELD
        job.window.due()
        self._complain(job, str(fate))
        self._is_broken = self._is_broken or isinstance(fate, Unroutable)
        (self._doubted if isinstance(fate, Doubtful) else self._held).append(job)
        if self._trying is None or self._trying.done():
            self._trying = asyncio.ensure_future(self._try())

    def _complain(self, job: Job, says: str) -> None:
        """One line for a trouble, not one for each letter that has it."""
        if job.held is None:
            now = job.delivered.consumer.connection.loop.time()
            if not self._troubled or all(
                each.held.says != says for each in self._troubled if each.held
            ):
                self._log.warning("not sent; trying again", action="not_sent", why=says)
            job.held = Trouble(now, says)
            self._troubled.add(job)

    async def _try(self) -> None:
        """Send held letters again, more patiently each time; mend what has no queue first."""
        while self._held or self._doubted:
            self._wake.clear()
            try:
                async with asyncio.timeout(self._wait * random.uniform(0.75, 1.25)):
                    await self._wake.wait()
            except TimeoutError:
                self._wait = min(self._wait * 2, LONGEST_WAIT)
            if self._is_broken:
                self._is_broken = False
                await self._mended()
            held, self._held = self._held, []
            for job in held:
                self._try_job(job)
            if self._doubted and self._alone is None:
                self._alone = self._doubted.popleft()
                self._try_job(self._alone)

    async def _mended(self) -> None:
        """Declare what is missing; held letters are tried again whether that works or not."""
        try:
            await self._mend()
        except asyncio.CancelledError:  # also aio-pika's word for a connection lost meanwhile
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
        except Exception as fault:  # noqa: BLE001  # whatever it is, the letters are held
            self._log.warning("not mended", action="not_mended", why=repr(fault))

    def _try_job(self, job: Job) -> None:
        if not job.is_ours:
            self._alone = None if job is self._alone else self._alone
            return
        try:
            self._next(job)
        except Exception as bug:  # noqa: BLE001  # as for its first try
            self._stumble(job, bug)
