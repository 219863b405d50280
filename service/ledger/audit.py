"""The audit: who did what, when, to how many letters, and why. Written with the deed, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from service.ledger.book import Book
from service.ledger.tables import AUDIT

LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Deed:
    """What an operator did: `letters.discard`, `replay.start`, `cause.mute`, `queue.adopt` …"""

    who: str
    action: str
    subject: str
    """What it was done to: `cause:4f…`, `replay:9a…`, `letter:…`, `letters` for a filter."""
    how_many: int = 1
    why: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the audit."""

    number: int
    at: datetime
    deed: Deed


@dataclass(frozen=True, slots=True)
class Asked:
    """Which lines: every field that is given must hold."""

    who: str | None = None
    action: str | None = None
    subject: str | None = None


async def write(connection: AsyncConnection, deed: Deed, at: datetime) -> None:
    """Add the line, inside the transaction of the verb that does the deed: both or neither."""
    row = AUDIT.insert().values(
        at=at,
        who=clean(deed.who),
        action=deed.action,
        subject=clean(deed.subject),
        how_many=deed.how_many,
        why=clean(deed.why),
        details=dict(deed.details),
    )
    await connection.execute(row)


async def page(book: Book, asked: Asked, before: int | None, limit: int) -> tuple[Entry, ...]:
    """The next lines, newest first."""
    query = select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
    for name in ("who", "action", "subject"):
        if (value := getattr(asked, name)) is not None:
            query = query.where(AUDIT.c[name] == value)
    if before is not None:
        query = query.where(AUDIT.c.number < before)
    async with book.reading() as connection:
        rows = (await connection.execute(query)).all()
    return tuple(
        Entry(
            row.number,
            row.at,
            Deed(row.who, row.action, row.subject, row.how_many, row.why, row.details),
        )
        for row in rows
    )


def clean(text: str) -> str:
    """PostgreSQL refuses NUL and half characters in text."""
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace("\x00", "\N{SYMBOL FOR NULL}")[:LONGEST]
