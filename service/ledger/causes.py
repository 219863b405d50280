"""Causes: letters that failed alike, as people look at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, exists, func, or_, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import OPEN, CauseState, LetterState
from service.ledger.book import Book
from service.ledger.tables import CAUSE_HOURS, CAUSES, LETTER_COUNTS, LETTERS

SAMPLE = 2_000
"""Open letters of each state that the breakdown of a cause is made of, the newest."""
MOST_LINES = 20
DAY = 24


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause as it stands."""

    id: str
    version: int
    title: str
    error_type: str
    place: str
    state: CauseState
    muted_until: datetime | None
    note: str
    owner: str
    first_seen: datetime
    last_seen: datetime
    changed_at: datetime
    burials: int
    letters: Mapping[LetterState, int] = field(default_factory=dict)
    """How many of its letters are in which state."""
    hours: tuple[int, ...] = ()
    """Burials in each of the last 24 hours, the oldest first; the last hour is not over."""

    @property
    def open(self) -> int:
        """Letters that need somebody."""
        return sum(self.letters.get(state, 0) for state in OPEN)


@dataclass(frozen=True, slots=True)
class Line:
    """Open letters of one routing key that died in one queue."""

    routing_key: str
    origin_queue: str
    letters: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the newest open letters of a cause come from; `whole` where these are all."""

    letters: int
    whole: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """One cause, with what its own page shows."""

    cause: Cause
    week: tuple[tuple[datetime, int], ...]
    breakdown: Breakdown


@dataclass(frozen=True, slots=True)
class NoCause:
    """There is no such cause."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which causes."""

    states: tuple[CauseState, ...] = ()
    owner: str | None = None
    text: str | None = None
    """Somewhere in the title, the note or the error's type."""
    open: bool | None = None
    """Whether it has letters that need somebody."""
    by: str = "changed_at"
    """`changed_at` or `last_seen`: the newest first."""


After = tuple[datetime, str]


async def page(
    book: Book, wanted: Wanted, after: After | None, limit: int, now: datetime
) -> tuple[tuple[Cause, ...], After | None]:
    """The next causes, and where the page after them begins."""
    order = CAUSES.c[wanted.by]
    query = (
        select(CAUSES)
        .where(*_conditions(wanted, now), *_beyond(order, after))
        .order_by(order.desc(), CAUSES.c.id.desc())
        .limit(limit + 1)
    )
    async with book.reading() as connection:
        rows = (await connection.execute(query)).all()
        causes = await _filled(connection, rows[:limit], now)
    more = len(rows) > limit
    return causes, (getattr(causes[-1], wanted.by), causes[-1].id) if more else None


async def find(book: Book, id_: str, now: datetime) -> Story | NoCause:
    """One cause, its week and where its letters come from."""
    async with book.reading() as connection:
        found = (await connection.execute(select(CAUSES).where(CAUSES.c.id == id_))).all()
        if not found:
            return NoCause()
        (cause,) = await _filled(connection, found, now)
        week = await _hours(connection, [id_], now - timedelta(days=7))
        lines = (await connection.execute(_breakdown(id_))).all()
    breakdown = _read(lines, cause.open)
    return Story(cause, tuple((hour, burials) for _, hour, burials in week), breakdown)


def state_at(now: datetime) -> ColumnElement[str]:
    """The state as it is now: a mute that has run out is none."""
    over = and_(CAUSES.c.state == CauseState.MUTED.value, CAUSES.c.muted_until <= now)
    return case((over, CauseState.ACKNOWLEDGED.value), else_=CAUSES.c.state)


def _conditions(wanted: Wanted, now: datetime) -> Iterable[ColumnElement[bool]]:
    if wanted.states:
        yield state_at(now).in_([state.value for state in wanted.states])
    if wanted.owner is not None:
        yield CAUSES.c.owner == wanted.owner
    if wanted.text:
        columns = (CAUSES.c.title, CAUSES.c.note, CAUSES.c.error_type)
        yield or_(*(column.icontains(wanted.text, autoescape=True) for column in columns))
    if wanted.open is not None:
        counts = LETTER_COUNTS.c
        some = exists().where(
            counts.cause == CAUSES.c.id,
            counts.state.in_([state.value for state in OPEN]),
            counts.letters > 0,
        )
        yield some if wanted.open else ~some


def _beyond(order: ColumnElement[Any], after: After | None) -> Iterable[ColumnElement[bool]]:
    if after is not None:
        moment, id_ = after
        yield order <= moment  # what an index can begin with
        yield or_(order < moment, CAUSES.c.id < id_)


async def _filled(
    connection: AsyncConnection, rows: Sequence[Row[Any]], now: datetime
) -> tuple[Cause, ...]:
    """The rows with their counts: two statements for a page, whatever its length."""
    ids = [row.id for row in rows]
    counts = LETTER_COUNTS.c
    letters: dict[str, dict[LetterState, int]] = {id_: {} for id_ in ids}
    query = select(counts.cause, counts.state, func.sum(counts.letters))
    query = query.where(counts.cause.in_(ids)).group_by(counts.cause, counts.state)
    for cause, state, many in await connection.execute(query):
        letters[cause][LetterState(state)] = int(many)
    begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=DAY - 1)
    hours: dict[str, list[int]] = {id_: [0] * DAY for id_ in ids}
    for cause, hour, burials in await _hours(connection, ids, begin):
        if 0 <= (place := int((hour - begin).total_seconds() // 3600)) < DAY:
            hours[cause][place] += burials
    return tuple(cause_of(row, now, letters[row.id], tuple(hours[row.id])) for row in rows)


async def _hours(
    connection: AsyncConnection, ids: Sequence[str], since: datetime
) -> list[tuple[str, datetime, int]]:
    hours = CAUSE_HOURS.c
    query = select(hours.cause, hours.hour, hours.burials)
    query = query.where(hours.cause.in_(ids), hours.hour >= since).order_by(hours.hour)
    return [(cause, hour, burials) for cause, hour, burials in await connection.execute(query)]


def _breakdown(id_: str) -> Any:
    """The newest open letters by routing key and queue: a sample, for counting all takes too long."""
    columns = (LETTERS.c.routing_key, LETTERS.c.origin_queue)
    parts = [
        select(*columns)
        .where(LETTERS.c.cause == id_, LETTERS.c.state == state.value)
        .order_by(LETTERS.c.number.desc())
        .limit(SAMPLE)
        .subquery()
        for state in OPEN
    ]
    every = union_all(*(select(part) for part in parts)).subquery()
    many = func.count().label("letters")
    return (
        select(every.c.routing_key, every.c.origin_queue, many)
        .group_by(every.c.routing_key, every.c.origin_queue)
        .order_by(many.desc(), every.c.routing_key, every.c.origin_queue)
    )


def _read(rows: Sequence[Row[Any]], open_: int) -> Breakdown:
    seen = sum(row.letters for row in rows)
    lines = tuple(Line(row.routing_key, row.origin_queue, row.letters) for row in rows[:MOST_LINES])
    return Breakdown(seen, seen >= open_ and len(rows) <= MOST_LINES, lines)


def cause_of(
    row: Row[Any],
    now: datetime,
    letters: Mapping[LetterState, int] | None = None,
    hours: tuple[int, ...] = (),
) -> Cause:
    """A row as a value."""
    until = row.muted_until
    over = row.state == CauseState.MUTED and until is not None and until <= now
    return Cause(
        row.id,
        row.version,
        row.title,
        row.error_type,
        row.place,
        CauseState.ACKNOWLEDGED if over else CauseState(row.state),
        None if over else until,
        row.note,
        row.owner,
        row.first_seen,
        row.last_seen,
        row.changed_at,
        row.burials,
        letters or {},
        hours,
    )
