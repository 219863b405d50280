"""The ledger in a few figures: for the status, and to notice that something has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import OPEN, CauseState, LetterState, ReplayState
from service.ledger.book import Book
from service.ledger.causes import state_at
from service.ledger.tables import CAUSE_HOURS, CAUSES, LETTER_COUNTS, LETTERS, REPLAYS

LATELY = timedelta(minutes=5)
SAMPLE = 5_000  # letters looked at to say how many come in a minute
ENDED = (ReplayState.FINISHED, ReplayState.STOPPED)
RUNNING = tuple(state for state in ReplayState if state not in ENDED)
COUNTS = LETTER_COUNTS.c


@dataclass(frozen=True, slots=True)
class Running:
    """A replay that has not ended."""

    id: str
    state: ReplayState
    total: int


@dataclass(frozen=True, slots=True)
class Figures:
    """How the ledger stands."""

    letters: Mapping[LetterState, int]
    flows: Mapping[str, int]
    """Open letters of each flow."""
    oldest: datetime | None
    """When the open letter that came first was buried."""
    per_minute: float
    usual_per_minute: float
    causes: Mapping[CauseState, int]
    replays: tuple[Running, ...]


@dataclass(frozen=True, slots=True)
class Pulse:
    """What differs when there is something new to see."""

    letters: Mapping[LetterState, int]
    newest: int
    causes: tuple[datetime | None, datetime | None]
    replays: tuple[Running, ...]


async def figures(book: Book, now: datetime) -> Figures:
    """Everything the status says, out of counts and ends of indexes."""
    async with book.reading() as connection:
        return Figures(
            await _letters(connection),
            await _flows(connection),
            await _oldest(connection),
            await _per_minute(connection, now),
            await _usual(connection, now),
            await _causes(connection, now),
            await _running(connection),
        )


async def pulse(book: Book) -> Pulse:
    """Cheap enough to be asked every second."""
    seen = select(func.max(CAUSES.c.changed_at), func.max(CAUSES.c.last_seen))
    async with book.reading() as connection:
        newest = await connection.scalar(select(func.max(LETTERS.c.number)))
        changed, last = (await connection.execute(seen)).one()
        letters, replays = await _letters(connection), await _running(connection)
    return Pulse(letters, newest or 0, (changed, last), replays)


async def _letters(connection: AsyncConnection) -> dict[LetterState, int]:
    query = select(COUNTS.state, func.sum(COUNTS.letters)).group_by(COUNTS.state)
    found = {LetterState(state): int(many) for state, many in await connection.execute(query)}
    return {state: found.get(state, 0) for state in LetterState}


async def _flows(connection: AsyncConnection) -> dict[str, int]:
    query = (
        select(COUNTS.flow, func.sum(COUNTS.letters))
        .where(COUNTS.state.in_([state.value for state in OPEN]))
        .group_by(COUNTS.flow)
        .order_by(COUNTS.flow)
    )
    return {flow: int(many) for flow, many in await connection.execute(query) if many}


async def _oldest(connection: AsyncConnection) -> datetime | None:
    firsts = [
        select(LETTERS.c.buried_at)
        .where(LETTERS.c.state == state.value)
        .order_by(LETTERS.c.number)
        .limit(1)
        .subquery()
        for state in OPEN
    ]
    every = union_all(*(select(first) for first in firsts)).subquery()
    found: datetime | None = await connection.scalar(select(func.min(every.c.buried_at)))
    return found


async def _per_minute(connection: AsyncConnection, now: datetime) -> float:
    """From the newest letters: all of the last minutes, or as many as are looked at."""
    newest = select(LETTERS.c.filed_at).order_by(LETTERS.c.number.desc()).limit(SAMPLE).subquery()
    lately = select(func.count(), func.min(newest.c.filed_at)).where(
        newest.c.filed_at >= now - LATELY
    )
    many, first = (await connection.execute(lately)).one()
    span = LATELY if many < SAMPLE else max(now - first, timedelta(seconds=1))
    return round(int(many) / (span / timedelta(minutes=1)), 1)


async def _usual(connection: AsyncConnection, now: datetime) -> float:
    """Burials a minute over the last day of whole hours."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    hours = CAUSE_HOURS.c
    query = select(func.coalesce(func.sum(hours.burials), 0))
    query = query.where(hours.hour >= hour - timedelta(days=1), hours.hour < hour)
    return round(int(await connection.scalar(query) or 0) / (24 * 60), 1)


async def _causes(connection: AsyncConnection, now: datetime) -> dict[CauseState, int]:
    state = state_at(now).label("state")
    inner = select(state).subquery()
    query = select(inner.c.state, func.count()).group_by(inner.c.state)
    found = {CauseState(name): many for name, many in await connection.execute(query)}
    return {each: found.get(each, 0) for each in CauseState}


async def _running(connection: AsyncConnection) -> tuple[Running, ...]:
    columns = (REPLAYS.c.id, REPLAYS.c.state, REPLAYS.c.total)
    going = REPLAYS.c.state.in_([state.value for state in RUNNING])
    query = select(*columns).where(going).order_by(REPLAYS.c.number.desc()).limit(100)
    rows = (await connection.execute(query)).all()
    return tuple(Running(row.id, ReplayState(row.state), row.total) for row in rows)
