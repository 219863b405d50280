"""Settlements: begun, settled once, or given up. Each verb is one database transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import update

from service.ledger.book import Book
from service.ledger.tables import TRANSACTIONS
from service.ledger.transactions import Status, Transaction, Unknown, read, transaction_of


@dataclass(frozen=True, slots=True)
class Attempt:
    """The bank may be asked now: which transaction, for the how-manieth time."""

    transaction: Transaction
    number: int


@dataclass(frozen=True, slots=True)
class SettledBefore:
    """It is settled: there is nothing left to do."""


@dataclass(frozen=True, slots=True)
class NotProcessed:
    """It has not been processed yet: nobody may ask for its settlement."""


async def begin(book: Book, id_: str) -> Attempt | SettledBefore | NotProcessed | Unknown:
    """Count an attempt before the bank is asked; a transaction that is settled is asked for no more."""
    step = (
        update(TRANSACTIONS)
        .where(TRANSACTIONS.c.id == id_, TRANSACTIONS.c.status == Status.PROCESSED.value)
        .values(attempts=TRANSACTIONS.c.attempts + 1)
        .returning(TRANSACTIONS)
    )
    async with book.writing() as connection:
        row = (await connection.execute(step)).one_or_none()
        if row is not None:
            return Attempt(transaction_of(row), row.attempts)
        found = await read(connection, id_)
    if isinstance(found, Unknown):
        return found
    return SettledBefore() if found.status is Status.SETTLED else NotProcessed()


async def settle(book: Book, id_: str, bank_reference: str, now: datetime) -> bool:
    """`processed` → `settled`; False where another delivery of the same letter was quicker."""
    step = (
        update(TRANSACTIONS)
        .where(TRANSACTIONS.c.id == id_, TRANSACTIONS.c.status == Status.PROCESSED.value)
        .values(
            status=Status.SETTLED.value,
            settled_at=now,
            bank_reference=bank_reference,
            dead_at=None,
            dead_reason=None,
        )
    )
    async with book.writing() as connection:
        return (await connection.execute(step)).rowcount == 1


async def bury(book: Book, id_: str, reason: str, now: datetime) -> Transaction | Unknown:
    """Note that the letter of an unsettled transaction lies in the dead letters, and why."""
    step = (
        update(TRANSACTIONS)
        .where(TRANSACTIONS.c.id == id_, TRANSACTIONS.c.status != Status.SETTLED.value)
        .values(dead_at=now, dead_reason=reason)
    )
    async with book.writing() as connection:
        await connection.execute(step)
        return await read(connection, id_)
