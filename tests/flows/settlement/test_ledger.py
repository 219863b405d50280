"""The verbs of the payment story, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from service.flows.settlement import letters
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.outbox import Outgoing, claim, forget, mark_sent, release
from service.ledger.schema import upgrade
from service.ledger.settlements import Attempt, NotProcessed, SettledBefore, begin, bury, settle
from service.ledger.transactions import (
    Draft,
    KeyTaken,
    Recorded,
    Status,
    Transaction,
    Unknown,
    find,
    process,
    record,
)

NOW = datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=UTC)
LEASE = timedelta(seconds=10)
DRAFT = Draft("ACME-1", "19.90", "EUR", "invoice 42")


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


def new(draft: Draft = DRAFT) -> Transaction:
    return Transaction(str(uuid4()), draft, Status.CREATED, NOW)


async def recorded(book: Book) -> Transaction:
    done = await record(book, new(), None, letters.created)
    assert isinstance(done, Recorded)
    return done.transaction


async def processed(book: Book) -> str:
    id_ = (await recorded(book)).id
    await process(book, id_, NOW, letters.requested)
    return id_


async def in_the_outbox(book: Book) -> list[str]:
    taken = await claim(book, NOW, NOW - LEASE, 100)  # a claim that has run out already
    return [letter.outgoing.exchange for letter in taken]


async def test_a_transaction_and_its_letter_are_written_together(book: Book) -> None:
    transaction = await recorded(book)
    assert await find(book, transaction.id) == transaction
    (letter,) = await claim(book, NOW, NOW + LEASE, 100)
    assert letter.outgoing == letters.created(transaction)

    def no_letter(_transaction: Transaction) -> Outgoing:
        raise ZeroDivisionError

    lost = new()
    with pytest.raises(ZeroDivisionError):
        await record(book, lost, None, no_letter)
    assert await find(book, lost.id) == Unknown()


async def test_one_key_is_one_transaction_even_at_the_same_moment(book: Book) -> None:
    asked = [record(book, new(), "key", letters.created) for _ in range(8)]
    done = await asyncio.gather(*asked)
    ids = {one.transaction.id for one in done if isinstance(one, Recorded)}
    assert len(ids) == 1
    assert len(done) == 8
    assert await in_the_outbox(book) == ["transaction.created"]
    other = replace(DRAFT, amount="20.00")
    assert await record(book, new(other), "key", letters.created) == KeyTaken(ids.pop())


async def test_processing_twice_asks_once_for_the_settlement(book: Book) -> None:
    id_ = await processed(book)
    again = await process(book, id_, NOW + LEASE, letters.requested)
    assert isinstance(again, Transaction)
    assert (again.status, again.processed_at) == (Status.PROCESSED, NOW)
    assert await in_the_outbox(book) == ["transaction.created", "settlement.requested"]
    assert await process(book, str(uuid4()), NOW, letters.requested) == Unknown()


async def test_a_settlement_is_begun_often_and_made_once(book: Book) -> None:
    id_ = await processed(book)
    numbers = [one.number for _ in range(3) if isinstance(one := await begin(book, id_), Attempt)]
    assert numbers == [1, 2, 3]
    made = await asyncio.gather(*(settle(book, id_, f"bank {n}", NOW) for n in range(4)))
    assert sorted(made) == [False, False, False, True]
    assert await begin(book, id_) == SettledBefore()
    found = await find(book, id_)
    assert isinstance(found, Transaction)
    assert (found.status, found.settled_at, found.attempts) == (Status.SETTLED, NOW, 3)


async def test_what_is_not_processed_is_not_settled(book: Book) -> None:
    id_ = (await recorded(book)).id
    assert await begin(book, id_) == NotProcessed()
    assert not await settle(book, id_, "bank", NOW)
    assert await begin(book, str(uuid4())) == Unknown()


async def test_a_burial_is_noted_until_the_settlement_is_made_after_all(book: Book) -> None:
    id_ = await processed(book)
    dead = await bury(book, id_, "failed 4 times", NOW)
    assert isinstance(dead, Transaction)
    assert (dead.dead_reason, dead.status) == ("failed 4 times", Status.PROCESSED)
    assert await settle(book, id_, "bank", NOW)
    late = await bury(book, id_, "too late", NOW)
    assert isinstance(late, Transaction)
    assert (late.dead_reason, late.status) == (None, Status.SETTLED)


async def test_several_relays_never_hold_the_same_letter(book: Book) -> None:
    for _ in range(20):
        await recorded(book)
    taken = await asyncio.gather(*(claim(book, NOW, NOW + LEASE, 7) for _ in range(4)))
    numbers = [letter.number for claims in taken for letter in claims]
    assert len(numbers) == len(set(numbers))
    rest = await claim(book, NOW, NOW + LEASE, 100)
    assert len(numbers) + len(rest) == 20
    assert await claim(book, NOW, NOW + LEASE, 100) == ()


async def test_a_claim_is_given_back_or_runs_out_and_what_was_sent_is_forgotten(book: Book) -> None:
    for _ in range(3):
        await recorded(book)
    one, two, three = await claim(book, NOW, NOW + LEASE, 100)
    await mark_sent(book, [one], NOW)
    await release(book, [one, two])
    assert await claim(book, NOW, NOW + LEASE, 100) == (two,)
    later = NOW + 2 * LEASE
    assert await claim(book, later, later + LEASE, 100) == (two, three)
    await forget(book, NOW + LEASE)
    await forget(book, later)
    await release(book, [one, two, three])
    assert await claim(book, later, later + LEASE, 100) == (two, three)


async def test_a_table_that_is_missing_is_named(sqlite_url: str) -> None:
    with pytest.raises(LedgerAway, match="has no table transactions; run: dlo db upgrade"):
        await find(Book(sqlite_url), str(uuid4()))
