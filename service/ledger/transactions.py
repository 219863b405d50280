"""Transactions: asked for, processed, found. Each verb is one database transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Row, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.ledger.book import Book
from service.ledger.outbox import Outgoing, put
from service.ledger.tables import TRANSACTIONS


class Status(StrEnum):
    """How far a transaction has come."""

    CREATED = "created"
    PROCESSED = "processed"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody asks for."""

    account: str
    amount: str
    currency: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A row: what was asked for, how far it has come, and why it stays there if it does."""

    id: str
    draft: Draft
    status: Status
    created_at: datetime
    processed_at: datetime | None = None
    settled_at: datetime | None = None
    attempts: int = 0
    bank_reference: str | None = None
    dead_at: datetime | None = None
    dead_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The transaction of this request, made now or when the same request came before."""

    transaction: Transaction


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The idempotency key belongs to another request."""

    by: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no such transaction."""


Telling = Callable[[Transaction], Outgoing]


async def record(
    book: Book, transaction: Transaction, key: str | None, telling: Telling
) -> Recorded | KeyTaken:
    """Write the transaction and the letter that tells of it, both or neither.

    Two requests with one key race for the unique column: the later one waits for the earlier one's
    commit, inserts nothing, and finds the row that is there.
    """
    draft = transaction.draft
    row = book.insert(TRANSACTIONS).values(
        id=transaction.id,
        status=transaction.status.value,
        account=draft.account,
        amount=draft.amount,
        currency=draft.currency,
        reference=draft.reference,
        idempotency_key=key,
        created_at=transaction.created_at,
    )
    async with book.writing() as connection:
        once = row.on_conflict_do_nothing(index_elements=[TRANSACTIONS.c.idempotency_key])
        if (await connection.execute(once)).rowcount == 1:
            await put(connection, telling(transaction), transaction.created_at)
            return Recorded(transaction)
        earlier = await _with_key(connection, key)
    return Recorded(earlier) if earlier.draft == draft else KeyTaken(earlier.id)


async def find(book: Book, id_: str) -> Transaction | Unknown:
    """The transaction as it stands."""
    async with book.reading() as connection:
        return await read(connection, id_)


async def process(book: Book, id_: str, now: datetime, telling: Telling) -> Transaction | Unknown:
    """`created` → `processed`, with the letter that asks for its settlement, both or neither.

    A letter that comes twice finds the row processed and changes nothing.
    """
    step = (
        update(TRANSACTIONS)
        .where(TRANSACTIONS.c.id == id_, TRANSACTIONS.c.status == Status.CREATED.value)
        .values(status=Status.PROCESSED.value, processed_at=now)
    )
    async with book.writing() as connection:
        stepped = (await connection.execute(step)).rowcount == 1
        found = await read(connection, id_)
        if stepped and isinstance(found, Transaction):
            await put(connection, telling(found), now)
        return found


async def read(connection: AsyncConnection, id_: str) -> Transaction | Unknown:
    """The row of this id, inside a verb's transaction."""
    found = await connection.execute(select(TRANSACTIONS).where(TRANSACTIONS.c.id == id_))
    row = found.one_or_none()
    return Unknown() if row is None else transaction_of(row)


async def _with_key(connection: AsyncConnection, key: str | None) -> Transaction:
    found = await connection.execute(
        select(TRANSACTIONS).where(TRANSACTIONS.c.idempotency_key == key)
    )
    return transaction_of(found.one())


def transaction_of(row: Row[tuple[object, ...]]) -> Transaction:
    """A row of the table as a value."""
    return Transaction(
        row.id,
        Draft(row.account, row.amount, row.currency, row.reference),
        Status(row.status),
        row.created_at,
        row.processed_at,
        row.settled_at,
        row.attempts,
        row.bank_reference,
        row.dead_at,
        row.dead_reason,
    )
