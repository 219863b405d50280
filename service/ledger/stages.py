"""The stages of a replay: it takes its queues, ramps, pauses, watches, stops, finishes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import ItemState, ReplayState
from service.ledger.again import again
from service.ledger.audit import Deed, clean, write
from service.ledger.book import Book
from service.ledger.claims import reopen
from service.ledger.discards import CHUNK
from service.ledger.tables import REPLAY_ITEMS, REPLAY_TARGETS, REPLAYS

THE_OFFICE = "the office"
TO_SEND = (ItemState.PENDING.value, ItemState.CLAIMED.value)
IN_DOUBT = "in doubt: it may have been sent; the job was stopped before that was known"


@dataclass(frozen=True, slots=True)
class Begun:
    """Its queues are its own; sending may begin, or go on."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Another replay is sending to one of its queues."""

    queue: str
    by: str


async def begin(book: Book, job: str, state: ReplayState, now: datetime) -> Begun | Busy:
    """Take every queue that letters are still to be sent to, or none: whoever has the row sends there.

    In the order of their names, so that two jobs never wait for each other in a circle.
    """
    items, targets = REPLAY_ITEMS.c, REPLAY_TARGETS.c
    queues = select(items.queue).where(items.replay == job, items.state.in_(TO_SEND)).distinct()
    wanted = select(queues.subquery().c.queue, literal(job)).order_by("queue")
    take = book.insert(REPLAY_TARGETS).from_select(["queue", "replay"], wanted)
    other = select(REPLAY_TARGETS).where(targets.queue.in_(queues), targets.replay != job).limit(1)

    async def verb() -> Begun | Busy:
        async with book.writing() as connection:
            await connection.execute(take.on_conflict_do_nothing())
            holder = (await connection.execute(other)).one_or_none()
            if holder is not None:
                await _release(connection, job)
                says = f"replay {holder.replay} is sending to {holder.queue}"
                await _enter(connection, job, ReplayState.WAITING, says)
                return Busy(holder.queue, holder.replay)
            started_at = func.coalesce(REPLAYS.c.started_at, now)
            if not await _enter(connection, job, state, started_at=started_at):
                await _release(connection, job)
            return Begun()

    return await again(verb)


async def is_still(book: Book, busy: Busy) -> bool:
    """Whether the queue that was taken still is: asked often, and dear to find out by beginning."""
    own = REPLAY_TARGETS.c
    holder = select(own.replay).where(own.queue == busy.queue, own.replay == busy.by)
    async with book.reading() as connection:
        return await connection.scalar(holder) is not None


async def ramp(book: Book, job: str, now: datetime) -> None:
    """The canary has passed."""
    async with book.writing() as connection:
        await _enter(connection, job, ReplayState.RUNNING, ramped_at=now)


async def say(book: Book, job: str, says: str) -> None:
    """Why it does not get on."""
    said = clean(says)
    async with book.writing() as connection:
        step = update(REPLAYS).where(REPLAYS.c.id == job, REPLAYS.c.says != said)
        await connection.execute(step.values(says=said))


async def rest(book: Book, job: str, state: ReplayState) -> None:
    """Send nothing for now (paused) or any more (watching): others may have the queues."""
    async with book.writing() as connection:
        await _release(connection, job)
        await _enter(connection, job, state)


async def stop(book: Book, job: str, reason: str, now: datetime) -> int:
    """Send no more: what was not sent is as it was before. Letters in doubt go back to people, for one
    too many is better than one too few. How many were not sent."""
    own = REPLAY_ITEMS.c
    claimed = own.replay == job, own.state == ItemState.CLAIMED.value
    pending = own.replay == job, own.state == ItemState.PENDING.value
    stopped = {"state": ItemState.STOPPED.value, "ended_at": now}

    async def verb() -> int:
        async with book.writing() as connection:
            if not await _enter(connection, job, ReplayState.STOPPED, reason):
                return 0
            await _release(connection, job)
            await reopen(connection, job, select(own.letter).where(*claimed), now)
            in_doubt = update(REPLAY_ITEMS).where(*claimed).values(**stopped, says=IN_DOUBT)
            left = (await connection.execute(in_doubt)).rowcount
            rest_ = await connection.scalar(select(func.count()).where(*pending))
            count = left + (rest_ or 0)
            deed = Deed(THE_OFFICE, "replay.stopped", f"replay:{job}", count, reason)
            await write(connection, deed, now)
            return count

    count = await again(verb)
    await give_back(book, job, now)
    return count


async def give_back(book: Book, job: str, now: datetime) -> None:
    """Note of every letter that a stopped job did not send that it will not, a chunk at a time."""
    own = REPLAY_ITEMS.c
    pending = own.replay == job, own.state == ItemState.PENDING.value
    chunk = select(own.position).where(*pending).order_by(own.position).limit(CHUNK)
    stopped = {"state": ItemState.STOPPED.value, "ended_at": now}

    async def verb() -> int:
        async with book.writing() as connection:
            positions = (await connection.scalars(chunk)).all()
            if positions:
                step = update(REPLAY_ITEMS).where(*pending, own.position <= positions[-1])
                await connection.execute(step.values(**stopped))
            return len(positions)

    while await again(verb) == CHUNK:
        pass


async def finish(book: Book, job: str, state: ReplayState, now: datetime) -> None:
    """Every letter has its result; one that comes back later is noted all the same."""
    async with book.writing() as connection:
        await _release(connection, job)
        step = update(REPLAYS).where(REPLAYS.c.id == job, REPLAYS.c.ended_at.is_(None))
        await connection.execute(step.values(state=state.value, ended_at=now))


async def _enter(
    connection: AsyncConnection, job: str, state: ReplayState, says: str = "", **more: object
) -> bool:
    """False where the job has ended: a runner that slept too long changes nothing."""
    step = update(REPLAYS).where(REPLAYS.c.id == job, REPLAYS.c.ended_at.is_(None))
    entered = await connection.execute(step.values(state=state.value, says=clean(says), **more))
    return entered.rowcount == 1


async def _release(connection: AsyncConnection, job: str) -> None:
    await connection.execute(delete(REPLAY_TARGETS).where(REPLAY_TARGETS.c.replay == job))
