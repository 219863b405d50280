"""Rows of `dlq_event_config` in people's hands: written where nobody else has, each with its deed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.duration import say
from service.core.route import Route
from service.ledger.again import again
from service.ledger.audit import Deed, write
from service.ledger.book import Book
from service.ledger.rows import Row
from service.ledger.tables import ROUTES

ANY = "*"
"""An `If-Match` that takes whatever is there."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A row, and the tag that says it is still the same."""

    row: Row
    tag: str


@dataclass(frozen=True, slots=True)
class Made:
    """The row is new."""

    stored: Stored


@dataclass(frozen=True, slots=True)
class Changed:
    """The row was there and is another now."""

    stored: Stored


@dataclass(frozen=True, slots=True)
class Removed:
    """The row is gone."""


@dataclass(frozen=True, slots=True)
class NoRoute:
    """There is no such row."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The row is there, and whoever wants to change it has not said which version they saw."""

    tag: str


@dataclass(frozen=True, slots=True)
class Stale:
    """Somebody changed or removed the row since it was seen."""

    tag: str | None


async def every(book: Book) -> Sequence[Stored]:
    """All rows, as they stand."""
    async with book.reading() as connection:
        rows = (await connection.execute(select(ROUTES).order_by(ROUTES.c.name))).all()
    return [_stored(Row(*row)) for row in rows]


async def find(book: Book, name: str) -> Stored | NoRoute:
    """The row of this name."""
    async with book.reading() as connection:
        return await _read(connection, name)


async def put(
    book: Book, route: Route, seen: str | None, deed: Deed, now: datetime
) -> Made | Changed | Unseen | Stale:
    """Write a row; one that is there already only where the writer has seen it as it is."""

    async def verb() -> Made | Changed | Unseen | Stale:
        async with book.writing() as connection:
            old = await _read(connection, route.name)
            if isinstance(old, Stored) and (refusal := _refusal(old, seen)) is not None:
                return refusal
            if isinstance(old, NoRoute) and seen is not None:
                return Stale(None)
            if not await _write(connection, route, old):
                return Stale(None)  # another was quicker to make it
            new = await _read(connection, route.name)
            assert isinstance(new, Stored)
            details = {"before": _said(old), "after": _said(new)}
            await write(connection, replace(deed, details=details), now)
        return Changed(new) if isinstance(old, Stored) else Made(new)

    return await again(verb)


async def remove(
    book: Book, name: str, seen: str | None, deed: Deed, now: datetime
) -> Removed | Unseen | Stale | NoRoute:
    """Drop a row, where the remover has seen it as it is."""

    async def verb() -> Removed | Unseen | Stale | NoRoute:
        async with book.writing() as connection:
            old = await _read(connection, name)
            if isinstance(old, NoRoute):
                return old
            if (refusal := _refusal(old, seen)) is not None:
                return refusal
            await connection.execute(delete(ROUTES).where(ROUTES.c.name == name))
            await write(connection, replace(deed, details={"before": _said(old)}), now)
        return Removed()

    return await again(verb)


def delays_text(delays: tuple[timedelta, ...]) -> str | None:
    """As the table has them: `10s,20s`; None where the tiers count."""
    return ",".join(map(say, delays)) or None


def _refusal(old: Stored, seen: str | None) -> Unseen | Stale | None:
    if seen is None:
        return Unseen(old.tag)
    return None if seen in (ANY, old.tag) else Stale(old.tag)


async def _read(connection: AsyncConnection, name: str) -> Stored | NoRoute:
    """Locked where a verb writes: PostgreSQL reads are cheap to lock, SQLite's writers are alone."""
    query = select(ROUTES).where(ROUTES.c.name == name).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    return NoRoute() if row is None else _stored(Row(*row))


async def _write(connection: AsyncConnection, route: Route, old: Stored | NoRoute) -> bool:
    values = {
        "max_retries": route.max_retries,
        "delays": delays_text(route.delays),
        "return_to": route.return_to.value,
    }
    if isinstance(old, Stored):
        step = update(ROUTES).where(ROUTES.c.name == route.name).values(**values)
        await connection.execute(step)
        return True
    try:
        async with connection.begin_nested():
            await connection.execute(ROUTES.insert().values(name=route.name, **values))
    except IntegrityError:
        return False
    return True


def _stored(row: Row) -> Stored:
    text = json.dumps([row.id, *_cells(row)], default=repr, ensure_ascii=True)
    return Stored(row, sha256(text.encode()).hexdigest()[:16])


def _cells(row: Row) -> list[object]:
    return [row.name, row.max_retries, row.delays, row.return_to]


def _said(found: Stored | NoRoute) -> dict[str, object] | None:
    """What the audit keeps of it."""
    if isinstance(found, NoRoute):
        return None
    row = found.row
    kept = {"max_retries": row.max_retries, "delays": row.delays, "return_to": row.return_to}
    return {
        name: value if isinstance(value, int | str | None) else repr(value)
        for name, value in kept.items()
    }
