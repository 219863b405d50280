"""Letters as people look at them: pages, counts, one letter with its past. Each verb only reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import ItemState, LetterState
from service.ledger.book import Book
from service.ledger.filters import Filter, where
from service.ledger.tables import BURIALS, LETTER_COUNTS, LETTERS, REPLAY_ITEMS
from service.ledger.walks import cut, floor_of, way


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter on a page of many: everything but its bytes."""

    number: int
    id: str
    letter: str
    state: LetterState
    flow: str
    queue: str
    origin_queue: str
    exchange: str
    routing_key: str
    cause: str
    error_type: str
    error: str
    place: str
    reason: str
    retries: int
    burials: int
    replays: int
    size: int
    content_type: str
    first_failure: datetime
    filed_at: datetime
    buried_at: datetime
    changed_at: datetime
    replay: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """Letters, newest first; `next` is the number that the next page lies below, if there is one.

    A page may be short, or empty, and have a next one: it looked as far as one page may.
    """

    letters: tuple[Letter, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class Burial:
    """An earlier burial of a letter."""

    burial: int
    buried_at: datetime
    cause: str
    reason: str
    error_type: str
    error: str
    retries: int
    replay: str | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a letter in one replay."""

    replay: str
    position: int
    queue: str
    state: ItemState
    says: str
    sent_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Whole:
    """One letter, its bytes and its past."""

    letter: Letter
    body: bytes
    headers: bytes
    properties: bytes
    facts: Mapping[str, Any]
    earlier: tuple[Burial, ...]
    replayed: tuple[Replayed, ...]
    edited_from: str | None
    edits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoLetter:
    """There is no such letter."""


async def page(book: Book, wanted: Filter, before: int | None, limit: int) -> Page:
    """The next letters of a filter, newest first."""
    async with book.reading() as connection:
        floor = None if way(wanted).is_short else await connection.scalar(floor_of(wanted, before))
        rows = (await connection.execute(cut(wanted, NAMES, limit + 1, before, floor))).all()
    letters = tuple(letter_of(row) for row in rows[:limit])
    return Page(letters, letters[-1].number if len(rows) > limit else floor)


async def count(book: Book, wanted: Filter, most: int | None = None) -> int:
    """How many letters a filter takes: from the counts where they know, else by looking, up to `most`."""
    if wanted == Filter(cause=wanted.cause, flow=wanted.flow, states=wanted.states):
        query = select(func.coalesce(func.sum(LETTER_COUNTS.c.letters), 0)).where(*_counted(wanted))
    else:
        found = select(literal(1)).select_from(LETTERS).where(where(wanted)).limit(most)
        query = select(func.count()).select_from(found.subquery())
    async with book.reading() as connection:
        found_ = int(await connection.scalar(query) or 0)
    return found_ if most is None else min(found_, most)


async def find(book: Book, id_: str) -> Whole | NoLetter:
    """One letter, with its earlier burials and its replays."""
    async with book.reading() as connection:
        found = await connection.execute(select(LETTERS).where(LETTERS.c.id == id_))
        row = found.one_or_none()
        return NoLetter() if row is None else await _whole(connection, row)


async def body_of(book: Book, id_: str) -> bytes | NoLetter:
    """The bytes of one letter."""
    async with book.reading() as connection:
        found = await connection.execute(select(LETTERS.c.body).where(LETTERS.c.id == id_))
        row = found.one_or_none()
    return NoLetter() if row is None else bytes(row.body)


def letter_of(row: Row[Any]) -> Letter:
    """A row as a value."""
    named = {name: getattr(row, name) for name in NAMES}
    return Letter(**named | {"state": LetterState(row.state)})


def _counted(wanted: Filter) -> list[ColumnElement[bool]]:
    columns, conditions = LETTER_COUNTS.c, list[ColumnElement[bool]]()
    if wanted.states:
        conditions.append(columns.state.in_([state.value for state in wanted.states]))
    for name in ("cause", "flow"):
        if (value := getattr(wanted, name)) is not None:
            conditions.append(columns[name] == value)
    return conditions


async def _whole(connection: AsyncConnection, row: Row[Any]) -> Whole:
    earlier = await connection.execute(
        select(BURIALS).where(BURIALS.c.letter == row.number).order_by(BURIALS.c.burial)
    )
    items = REPLAY_ITEMS.c
    replayed = await connection.execute(
        select(REPLAY_ITEMS).where(items.letter == row.number).order_by(items.sent_at, items.replay)
    )
    edits = await connection.scalars(
        select(LETTERS.c.id).where(LETTERS.c.edited_from == row.number).order_by(LETTERS.c.number)
    )
    source = await connection.scalar(
        select(LETTERS.c.id).where(LETTERS.c.number == row.edited_from)
    )
    return Whole(
        letter_of(row),
        bytes(row.body),
        bytes(row.headers),
        bytes(row.properties),
        row.facts if isinstance(row.facts, dict) else {},
        tuple(_burial(one) for one in earlier),
        tuple(_replayed(one) for one in replayed),
        source,
        tuple(edits),
    )


def _burial(row: Row[Any]) -> Burial:
    what = (row.cause, row.reason, row.error_type, row.error, row.retries, row.replay)
    return Burial(row.burial, row.buried_at, *what)


def _replayed(row: Row[Any]) -> Replayed:
    when = (row.sent_at, row.ended_at)
    return Replayed(row.replay, row.position, row.queue, ItemState(row.state), row.says, *when)


NAMES = tuple(Letter.__dataclass_fields__)
