"""The window: the letters of one consumer in our hands, in the order they came.

Acknowledgements are cumulative: one frame for an unbroken row of finished letters. A letter that is
held (its send is tried again and again) must not keep those behind it waiting, or one of them would
stop the queue as soon as the prefetch is full: past a held letter they are acknowledged one by one.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING

from service.core.plan import Settle

if TYPE_CHECKING:
    from service.edge.wire.consumer import Consumer
    from service.edge.wire.job import Job


class Stage(IntEnum):
    """How far a letter in our hands is."""

    WORKING = 0
    HELD = 1
    DONE = 2
    SETTLED = 3


class Window:
    """Settles each letter once, when it is finished."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.jobs: deque[Job] = deque()
        self._is_due = False

    @property
    def unfinished(self) -> list[Job]:
        """The letters that are still to be dealt with."""
        return [job for job in self.jobs if job.stage < Stage.DONE]

    def finish(self, job: Job, how: Settle) -> None:
        """A letter is dealt with: settle it with the next write."""
        if how is Settle.ACK:
            job.stage = Stage.DONE
        else:
            job.stage = Stage.SETTLED
            self.consumer.reject(job.delivered.tag, requeue=how is Settle.REQUEUE)
        self.due()

    def due(self) -> None:
        """Look at the row again at the end of this turn."""
        if not self._is_due:
            self._is_due = True
            self.consumer.connection.loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._is_due = False
        jobs, last = self.jobs, 0
        while jobs and jobs[0].stage >= Stage.DONE:
            job = jobs.popleft()
            # The broker closes the channel over a tag that is settled already.
            last = job.delivered.tag if job.stage is Stage.DONE else last
        if last:
            self.consumer.acknowledge(last, upto=True)
        if jobs and jobs[0].stage is Stage.HELD:
            self._past_the_held()

    def _past_the_held(self) -> None:
        """What is settled is let go: the prefetch, and with it our memory, counts only what is not."""
        for job in self.jobs:
            if job.stage is Stage.DONE:
                job.stage = Stage.SETTLED
                self.consumer.acknowledge(job.delivered.tag, upto=False)
        self.jobs = deque(job for job in self.jobs if job.stage < Stage.DONE)
