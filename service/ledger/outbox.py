"""The outbox: letters written with the rows they tell of, and sent after. Verbs, one transaction each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.ledger.book import Book
from service.ledger.tables import OUTBOX


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A letter that shall be sent: its id, its address, its body."""

    letter: str
    exchange: str
    routing_key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Claimed:
    """A letter that is ours to send until the claim runs out."""

    number: int
    outgoing: Outgoing


async def put(connection: AsyncConnection, outgoing: Outgoing, now: datetime) -> None:
    """Add a letter, inside the transaction of the verb that writes what it tells of."""
    row = OUTBOX.insert().values(
        letter=outgoing.letter,
        exchange=outgoing.exchange,
        routing_key=outgoing.routing_key,
        body=outgoing.body,
        created_at=now,
    )
    await connection.execute(row)


async def claim(book: Book, now: datetime, until: datetime, limit: int) -> tuple[Claimed, ...]:
    """Take letters to send, oldest first; several relays never hold the same one at a time.

    A claim ends by itself: the letters of a relay that died are sent by the next. Rows that another
    relay is just claiming are passed over instead of waited for.
    """
    async with book.reading() as connection:
        if not await connection.scalar(select(exists().where(_is_free(now)))):
            return ()  # asking takes no lock; claiming would, several times a second
    free = select(OUTBOX.c.number).where(_is_free(now)).order_by(OUTBOX.c.number).limit(limit)
    step = (
        update(OUTBOX)
        .where(OUTBOX.c.number.in_(free.with_for_update(skip_locked=True)))
        .values(claimed_until=until)
        .returning(OUTBOX)
    )
    async with book.writing() as connection:
        rows = sorted((await connection.execute(step)).all(), key=lambda row: int(row.number))
    return tuple(
        Claimed(row.number, Outgoing(row.letter, row.exchange, row.routing_key, row.body))
        for row in rows
    )


async def mark_sent(book: Book, letters: Iterable[Claimed], now: datetime) -> None:
    """RabbitMQ has confirmed these."""
    step = update(OUTBOX).where(_among(letters)).values(sent_at=now)
    async with book.writing() as connection:
        await connection.execute(step)


async def renew(book: Book, letters: Iterable[Claimed], until: datetime) -> None:
    """Still ours: the broker takes its time, and nobody else may send them meanwhile."""
    step = update(OUTBOX).where(_among(letters), OUTBOX.c.sent_at.is_(None))
    async with book.writing() as connection:
        await connection.execute(step.values(claimed_until=until))


async def release(book: Book, letters: Iterable[Claimed]) -> None:
    """These could not be sent: whoever is first may try again."""
    step = update(OUTBOX).where(_among(letters), OUTBOX.c.sent_at.is_(None))
    async with book.writing() as connection:
        await connection.execute(step.values(claimed_until=None))


async def forget(book: Book, before: datetime) -> None:
    """Drop what was sent before this moment: the outbox does not grow for ever."""
    async with book.writing() as connection:
        await connection.execute(delete(OUTBOX).where(OUTBOX.c.sent_at < before))


def _is_free(now: datetime) -> ColumnElement[bool]:
    free = or_(OUTBOX.c.claimed_until.is_(None), OUTBOX.c.claimed_until < now)
    return OUTBOX.c.sent_at.is_(None) & free


def _among(letters: Iterable[Claimed]) -> ColumnElement[bool]:
    return OUTBOX.c.number.in_([letter.number for letter in letters])
