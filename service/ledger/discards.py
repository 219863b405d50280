"""Discarding letters, and taking it back: many at once, all or none, with the deed in the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import OPEN, LetterState
from service.ledger.again import again
from service.ledger.audit import Deed, write
from service.ledger.book import Book
from service.ledger.filters import Filter, where
from service.ledger.letters import count
from service.ledger.tables import LETTERS

CHUNK = 5_000  # rows of one statement, so that none takes longer than a statement may
GONE = (LetterState.DISCARDED,)
# A letter that was open and had been replayed had come back.
AS_BEFORE = case((LETTERS.c.replays > 0, LetterState.BACK.value), else_=LetterState.PARKED.value)


@dataclass(frozen=True, slots=True)
class Moved:
    """Done, to so many letters."""

    letters: int


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Nothing was done: the filter takes another number of letters than was expected."""

    letters: int


class _Unexpected(Exception):
    """Undoes the transaction."""

    def __init__(self, letters: int) -> None:
        self.letters = letters


async def discardable(book: Book, wanted: Filter) -> int:
    """How many letters a discard with this filter would take."""
    return await _takes(book, wanted, OPEN)


async def restorable(book: Book, wanted: Filter) -> int:
    """How many letters a restore with this filter would bring back."""
    return await _takes(book, wanted, GONE)


async def discard(
    book: Book, wanted: Filter, deed: Deed, expected: int | None, now: datetime
) -> Moved | Otherwise:
    """Open letters → discarded. They stay restorable until they are forgotten."""
    values = {"state": LetterState.DISCARDED.value, "changed_at": now}
    return await _move(book, _among(wanted, OPEN), values, deed, expected, now)


async def restore(
    book: Book, wanted: Filter, deed: Deed, expected: int | None, now: datetime
) -> Moved | Otherwise:
    """Discarded letters → what they were before."""
    values = {"state": AS_BEFORE, "changed_at": now}
    return await _move(book, _among(wanted, GONE), values, deed, expected, now)


def _among(wanted: Filter, states: tuple[LetterState, ...]) -> ColumnElement[bool]:
    return where(wanted) & LETTERS.c.state.in_([state.value for state in states])


async def _takes(book: Book, wanted: Filter, states: tuple[LetterState, ...]) -> int:
    """A filter's own states still count: open ones of those it names."""
    both = tuple(state for state in states if not wanted.states or state in wanted.states)
    return await count(book, replace(wanted, states=both)) if both else 0


async def _move(
    book: Book,
    among: ColumnElement[bool],
    values: Mapping[str, Any],
    deed: Deed,
    expected: int | None,
    now: datetime,
) -> Moved | Otherwise:
    async def verb() -> Moved:
        async with book.writing() as connection:
            moved = await _in_chunks(connection, among, values)
            if expected is not None and moved != expected:
                raise _Unexpected(moved)
            if moved:
                await write(connection, replace(deed, how_many=moved), now)
        return Moved(moved)

    try:
        return await again(verb)
    except _Unexpected as unexpected:
        return Otherwise(unexpected.letters)


async def _in_chunks(
    connection: AsyncConnection, among: ColumnElement[bool], values: Mapping[str, Any]
) -> int:
    """Rows are locked in the order of their numbers, as everybody locks them."""
    moved, last, number = 0, 0, LETTERS.c.number
    while True:
        chunk = select(number).where(among, number > last).order_by(number).limit(CHUNK)
        numbers = (await connection.scalars(chunk.with_for_update())).all()
        if not numbers:
            return moved
        step = update(LETTERS).where(number.in_(numbers), among).values(**values)
        moved += (await connection.execute(step)).rowcount
        last = numbers[-1]
