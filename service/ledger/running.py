"""Who runs a replay, and how far it has come: one runner at a time, by a lease."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import func, or_, select, update

from service.core.replay import Progress
from service.core.states import ItemState
from service.ledger.again import again
from service.ledger.book import Book
from service.ledger.replays import Replay, replay_of
from service.ledger.tables import REPLAY_ITEMS, REPLAYS

TAKEN = tuple(state.value for state in ItemState if state is not ItemState.PENDING)
FEW = (ItemState.CLAIMED, ItemState.SKIPPED, ItemState.UNROUTABLE, ItemState.BACK)


async def lease(book: Book, runner: str, now: datetime, until: datetime) -> tuple[Replay, ...]:
    """The jobs that are ours to run until then: those we had, and those that nobody has any more."""
    unended = REPLAYS.c.ended_at.is_(None)
    async with book.reading() as connection:
        if not await connection.scalar(select(REPLAYS.c.number).where(unended).limit(1)):
            return ()  # asking takes no lock; leasing would, every second
    free = or_(REPLAYS.c.runner.is_(None), REPLAYS.c.runner == runner, REPLAYS.c.runner_until < now)
    step = update(REPLAYS).where(unended, free).values(runner=runner, runner_until=until)

    async def verb() -> tuple[Replay, ...]:
        async with book.writing() as connection:
            rows = (await connection.execute(step.returning(REPLAYS))).all()
        return tuple(sorted(map(replay_of, rows), key=lambda replay: replay.number))

    return await again(verb)


async def let_go(book: Book, runner: str) -> None:
    """We are ending: whoever is there may run our jobs at once."""
    step = update(REPLAYS).where(REPLAYS.c.runner == runner, REPLAYS.c.ended_at.is_(None))
    async with book.writing() as connection:
        await connection.execute(step.values(runner=None, runner_until=None))


async def progress(book: Book, job: str, runner: str) -> tuple[Replay, Progress] | None:
    """The job and its letters, counted; None where it is not ours any more.

    Letters are taken in their order, so the first pending one says how many were taken: a count of a
    million rows would take longer than a step may. Only past a queue that refuses them are there more.
    """
    own = REPLAY_ITEMS.c
    mine = own.replay == job
    first = select(func.min(own.position)).where(mine, own.state == ItemState.PENDING.value)
    few = select(own.state, func.count()).where(mine, own.state.in_([s.value for s in FEW]))
    watched = select(own.position).where(mine, own.state == ItemState.SENT.value).limit(1)
    async with book.reading() as connection:
        found = await connection.execute(
            select(REPLAYS).where(REPLAYS.c.id == job, REPLAYS.c.runner == runner)
        )
        row = found.one_or_none()
        if row is None:
            return None
        next_ = await connection.scalar(first)
        past = 0
        if next_ is not None:
            later = mine, own.state.in_(TAKEN), own.position > next_
            past = await connection.scalar(select(func.count()).where(*later)) or 0
        counted = (await connection.execute(few.group_by(own.state))).all()
        is_watched = await connection.scalar(watched) is not None
    taken = row.total if next_ is None else next_ - 1 + past
    return replay_of(row), _progress(row.total, taken, dict(counted), watched=int(is_watched))


def _progress(total: int, taken: int, counts: Mapping[str, int], *, watched: int) -> Progress:
    claimed, skipped, unroutable, back = (counts.get(state.value, 0) for state in FEW)
    sent = taken - claimed - skipped - unroutable
    return Progress(total - taken, claimed, sent, watched, back, unroutable)
