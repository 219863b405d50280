"""Replays at work: every job that nobody else runs is leased, and driven to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

import structlog

from service.core.marks import Seal
from service.edge.post import Post
from service.flows.desk import Clock, utc_now
from service.flows.room import Reception
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.replays import Replay
from service.ledger.running import lease, let_go, progress
from service.office.driver import Blind, Driver, Manners, Told
from service.office.refusals import PATIENCE

# A runner that died is missed after this long; one that lives says so three times meanwhile.
LEASE = timedelta(seconds=2)
RENEWALS = 3
ENDING = 5.0

Changed = Callable[[str], None]


class Runner:
    """Runs every replay that no other process runs, for as long as the service does.

    `told` hears how many letters had which result, `blind` says why letters that die now would not be
    seen; `listeners` hear that a job has changed.
    """

    def __init__(
        self,
        book: Book,
        seal: Seal,
        *,
        batch: int,
        told: Told = lambda *_: None,
        blind: Blind = lambda: "",
        clock: Clock = utc_now,
        lasting: timedelta = LEASE,
    ) -> None:
        self._book, self._seal, self._clock, self._lasting = book, seal, clock, lasting
        self._manners = Manners(batch, told, clock, blind)
        self._name = uuid4().hex
        self._news, self._ending = asyncio.Event(), asyncio.Event()
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._log = structlog.get_logger("dlo.replay")
        self.listeners: list[Changed] = []

    def wake(self) -> None:
        """There is a new job, or somebody wants something of one."""
        self._news.set()

    def changed(self, job: str) -> None:
        """Tell whoever listens."""
        for listener in self.listeners:
            try:
                listener(job)
            except Exception as error:  # noqa: BLE001  # whoever listens changes nothing
                self._log.error("a listener failed", error=repr(error))

    async def run(self, reception: Reception) -> None:
        """Until cancelled; then the letters in hand are finished, and the jobs are anybody's."""
        try:
            while True:
                self._news.clear()
                try:
                    await self._lease(reception.post)
                except LedgerAway:
                    pass  # whoever else needs the ledger says so
                except Exception as fault:  # noqa: BLE001  # replays that silently end are worse
                    self._log.error("no replay could be leased", why=repr(fault))
                await _within(self._lasting.total_seconds() / RENEWALS, self._news.wait())
        finally:
            await self._end()

    async def _lease(self, post: Post) -> None:
        now = self._clock()
        mine = await lease(self._book, self._name, now, now + self._lasting)
        self._jobs = {id_: task for id_, task in self._jobs.items() if not task.done()}
        for job in mine:
            if job.id not in self._jobs:
                self._jobs[job.id] = asyncio.ensure_future(self._drive(job, post))

    async def _end(self) -> None:
        self._ending.set()
        if tasks := list(self._jobs.values()):
            _, late = await asyncio.wait(tasks, timeout=ENDING)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(LedgerAway):
                await let_go(self._book, self._name)

    async def _drive(self, job: Replay, post: Post) -> None:
        """One job, to its end or to ours; a ledger or a broker that is away only makes it wait."""
        driver = Driver(job.id, self._book, self._seal, self._manners, post)
        pause = PATIENCE[0]
        while not self._ending.is_set():
            try:
                known = await progress(self._book, job.id, self._name)
                if known is None or known[0].ended_at is not None:
                    await driver.note()  # what we sent is no longer in doubt, whoever runs it now
                    return
                if pause > PATIENCE[0]:
                    driver.lost_sight()  # the ledger was away
                wait = await driver.step(self._name, *known)
                self.changed(job.id)
            except Exception as fault:  # noqa: BLE001  # a replay that silently stops is worse
                self._log.warning(f"{fault}; trying again", action="replay_waits", replay=job.id)
                wait, pause = pause, min(pause * 2, PATIENCE[1])
            else:
                pause = PATIENCE[0]
            await _within(wait, self._ending.wait())
        with suppress(LedgerAway):
            await driver.note()


async def _within(seconds: float, something: Coroutine[object, object, object]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await something
