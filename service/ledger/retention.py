"""Retention: letters that need nobody any more are forgotten after their time, a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select

from service.core.states import LetterState
from service.ledger.again import again
from service.ledger.book import Book
from service.ledger.tables import BURIALS, CAUSE_HOURS, LETTERS

DONE = (LetterState.HANDLED, LetterState.QUIET)
DISCARDED = (LetterState.DISCARDED,)
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


async def forget_hours(book: Book, before: datetime) -> None:
    """Drop the counts of hours that nobody draws any more."""
    async with book.writing() as connection:
        await connection.execute(delete(CAUSE_HOURS).where(CAUSE_HOURS.c.hour < before))
