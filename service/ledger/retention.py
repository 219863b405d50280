"""Retention: letters and jobs that need nobody any more are forgotten after their time, few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, exists, select, tuple_

from service.core.states import CauseState, LetterState
from service.ledger.again import again
from service.ledger.book import Book
from service.ledger.tables import (
    BURIALS,
    CAUSE_HOURS,
    CAUSES,
    LETTER_COUNTS,
    LETTERS,
    REPLAY_ITEMS,
    REPLAYS,
)

DONE = (LetterState.HANDLED, LetterState.QUIET)
DISCARDED = (LetterState.DISCARDED,)
LOUD = (CauseState.NEW.value, CauseState.REGRESSED.value)
AT_ONCE = 500


async def forget(book: Book, states: Sequence[LetterState], before: datetime) -> int:
    """Drop letters in these states that have not changed since, with their older burials; how many,
    and never more than a few: nobody waits long for the locks."""

    async def once() -> int:
        async with book.writing() as connection:
            rows = await connection.execute(old.with_for_update(skip_locked=True))
            numbers = [row.number for row in rows]
            if numbers:
                await connection.execute(delete(BURIALS).where(BURIALS.c.letter.in_(numbers)))
                await connection.execute(delete(LETTERS).where(LETTERS.c.number.in_(numbers)))
            return len(numbers)

    named = [state.value for state in states]
    old = select(LETTERS.c.number).where(LETTERS.c.state.in_(named), LETTERS.c.changed_at < before)
    old = old.order_by(LETTERS.c.changed_at).limit(AT_ONCE)
    return await again(once)


async def forget_causes(book: Book, before: datetime) -> int:
    """Drop causes that have no letters, did not come since, and of which nobody ever said a word; how
    many, and never more than a few. One that comes at this moment is made anew by whoever files it."""
    counts, own = LETTER_COUNTS.c, CAUSES.c
    has_letters = exists().where(counts.cause == own.id, counts.letters > 0)
    old = (
        select(own.id)
        .where(own.last_seen < before, own.state.in_(LOUD), own.note == "", own.owner == "")
        .where(~has_letters)
        .order_by(own.last_seen)
        .limit(AT_ONCE)
    )

    async def once() -> int:
        async with book.writing() as connection:
            rows = await connection.execute(old.with_for_update(skip_locked=True))
            ids = [row.id for row in rows]
            if ids:
                await connection.execute(delete(CAUSES).where(own.id.in_(ids)))
                await connection.execute(delete(CAUSE_HOURS).where(CAUSE_HOURS.c.cause.in_(ids)))
            return len(ids)

    return await again(once)


async def forget_counts(book: Book) -> int:
    """Drop counts of no letters; how many, and never more than a few. A letter that comes at this
    moment waits for the row, and finds it gone or makes it count."""
    key = (LETTER_COUNTS.c.cause, LETTER_COUNTS.c.flow, LETTER_COUNTS.c.state)
    empty = select(*key).where(LETTER_COUNTS.c.letters == 0).order_by(*key).limit(AT_ONCE)

    async def once() -> int:
        async with book.writing() as connection:
            rows = await connection.execute(empty.with_for_update(skip_locked=True))
            keys = [tuple(row) for row in rows]
            if keys:
                await connection.execute(delete(LETTER_COUNTS).where(tuple_(*key).in_(keys)))
            return len(keys)

    return await again(once)


async def forget_replays(book: Book, before: datetime) -> int:
    """Drop jobs that ended before, their letters' results first; how many, and never more than a few
    at once. What people did stays in the audit."""
    own, mine = REPLAYS.c, (REPLAY_ITEMS.c.replay, REPLAY_ITEMS.c.position)
    ended = select(own.id).where(own.ended_at < before).order_by(own.ended_at).limit(AT_ONCE)

    async def once() -> int:
        async with book.writing() as connection:
            rows = await connection.execute(ended.with_for_update(skip_locked=True))
            jobs = list(rows.scalars())
            results = select(*mine).where(mine[0].in_(jobs)).limit(AT_ONCE)
            keys = [tuple(row) for row in await connection.execute(results)] if jobs else []
            if keys:
                await connection.execute(delete(REPLAY_ITEMS).where(tuple_(*mine).in_(keys)))
            if jobs and len(keys) < AT_ONCE:
                await connection.execute(delete(REPLAYS).where(own.id.in_(jobs)))
            return max(len(jobs), len(keys))

    return await again(once)


async def forget_hours(book: Book, before: datetime) -> None:
    """Drop the counts of hours that nobody draws any more."""
    async with book.writing() as connection:
        await connection.execute(delete(CAUSE_HOURS).where(CAUSE_HOURS.c.hour < before))
