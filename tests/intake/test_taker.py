"""One taker on a real queue: what the database will not have holds up nothing, and is not lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.marks import Seal
from service.core.states import LetterState
from service.edge import tolerance
from service.edge.wire import Delivered, connection
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.burial import Burial
from service.ledger.filing import Filed
from service.ledger.tables import LETTERS
from service.office import taker
from service.office.inquest import Inquest, Source
from service.office.intake_desk import Counter, Desk
from service.office.taker import Taker
from tests.intake.reading import causes, count, ledger, letters
from tests.kit.broker import channel_to, clean
from tests.servers.waiting import eventually

QUEUE = "shop.dlq"
tolerance.install()


class Silent:
    """Counts nothing."""

    def filed(self, flow: str, filed: Filed) -> None:
        """Nothing."""


NOBODY = Silent()


class Counting:
    """Counts what was filed."""

    total = Filed()

    def filed(self, flow: str, filed: Filed) -> None:
        """Some more."""
        self.total += filed


@dataclass(frozen=True, slots=True)
class Careless(Inquest):
    """Reads NUL into letters whose body says so, which PostgreSQL refuses in any text."""

    def hold(self, taken: Delivered, source: Source, now: datetime) -> Burial:
        burial = Inquest.hold(self, taken, source, now)
        if taken.body == b"stumble":
            raise RuntimeError("a bug")
        bad = taken.body.startswith((b"bad", b"worse"))
        return burial._replace(error="\x00") if bad else burial

    def bare(self, taken: Delivered, source: Source, now: datetime, why: str) -> Burial:
        burial = Inquest.bare(self, taken, source, now, why)
        bad = taken.body.startswith(b"worse")
        return burial._replace(error="\x00") if bad else burial


@dataclass(frozen=True, slots=True)
class Mendable(Careless):
    """Careless until it is mended."""

    mended: asyncio.Event = field(default_factory=asyncio.Event)

    def hold(self, taken: Delivered, source: Source, now: datetime) -> Burial:
        read = Inquest if self.mended.is_set() else Careless
        return read.hold(self, taken, source, now)


@asynccontextmanager
async def taking(
    url: str,
    book: Book,
    bodies: Sequence[bytes],
    inquest: Inquest,
    source: Source,
    counter: Counter = NOBODY,
) -> AsyncIterator[tuple[Taker, AbstractChannel]]:
    """A taker on a queue with these letters."""
    await clean(url, source.queue)
    async with channel_to(url) as channel:
        await channel.declare_queue(source.queue, durable=True)
        for number, body in enumerate(bodies):
            letter = Message(body, message_id=str(number), headers={"x-dlo-fingerprint": "f"})
            await channel.default_exchange.publish(letter, source.queue)
        takes = Taker(Desk(url, book, inquest, counter, prefetch=10, batch=5), source)
        takes.start()
        try:
            yield takes, channel
        finally:
            await takes.stop()
            await channel.queue_delete(source.queue)


async def test_a_letter_that_the_database_refuses_is_filed_with_its_bytes_alone(
    rabbit_url: str, postgres_url: str
) -> None:
    bodies = (b"good", b"bad", b"good", b"worse", b"stumble", *[b"good"] * 15)
    async with (
        ledger(postgres_url) as book,
        taking(rabbit_url, book, bodies, Careless(Seal()), Source(QUEUE)) as (takes, channel),
    ):
        await eventually(lambda: holds(book, 19), within=10)
        found = await letters(book)
        assert sum(row["body"] == b"good" for row in found) == 17
        (bad,) = [row for row in found if row["body"] == b"bad"]
        assert bad["reason"].startswith("it could not be read: ")
        assert bad["headers"], "bytes can always be kept"
        (stumbled,) = [row for row in found if row["body"] == b"stumble"]
        assert stumbled["reason"] == "it could not be read: RuntimeError"
        assert (await causes(book))["f"] == 17
        assert "1 letters cannot be filed" in takes.held
        await takes.stop()
        await eventually(lambda: is_left(channel, b"worse"), within=5)


async def test_a_queue_of_discards_is_only_recorded(rabbit_url: str, database_url: str) -> None:
    source = Source(QUEUE, "kdlq", discarded=True)
    async with (
        ledger(database_url) as book,
        taking(rabbit_url, book, [b"1", b"2"], Inquest(Seal()), source),
    ):
        await eventually(lambda: holds(book, 2), within=10)
        assert {row["state"] for row in await letters(book)} == {"discarded"}


@pytest.mark.parametrize("bad", [6, 10])
async def test_letters_that_left_no_room_are_tried_again(
    rabbit_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    """More than half of what we may hold, and all of it."""
    monkeypatch.setattr(taker, "PAUSE_OF_MANY", 0.2)
    bodies, careless = (*[b"worse"] * bad, *[b"good"] * 3), Mendable(Seal())
    async with (
        ledger(postgres_url) as book,
        taking(rabbit_url, book, bodies, careless, Source(QUEUE)) as (takes, _),
    ):
        await eventually(lambda: re.search(r"\b([6-9]|10) letters cannot", takes.held), within=10)
        careless.mended.set()
        await eventually(lambda: holds(book, len(bodies)), within=10)
        await eventually(lambda: not takes.held, within=5)


async def test_large_letters_that_cannot_be_filed_hold_up_no_other(
    rabbit_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_IN_HAND", 100_000)
    bodies = (*[b"worse" + bytes(40_000)] * 4, *[b"good"] * 20)
    async with (
        ledger(postgres_url) as book,
        taking(rabbit_url, book, bodies, Careless(Seal()), Source(QUEUE)) as (takes, _),
    ):
        await eventually(lambda: holds(book, 20), within=10)
        assert "4 letters cannot be filed" in takes.held


async def test_a_queue_is_taken_from_whatever_its_name_is(rabbit_url: str, sqlite_url: str) -> None:
    source = Source("größe (neu); $=1")
    async with (
        ledger(sqlite_url) as book,
        taking(rabbit_url, book, [b"1"], Inquest(Seal()), source) as (takes, _),
    ):
        await eventually(lambda: holds(book, 1), within=10)
        assert not takes.held


async def test_a_name_that_no_queue_can_have_is_said(rabbit_url: str, sqlite_url: str) -> None:
    async with ledger(sqlite_url) as book:
        takes = Taker(Desk(rabbit_url, book, Inquest(Seal()), Silent()), Source("ö" * 200))
        takes.start()
        try:
            await eventually(lambda: "cannot be taken" in takes.held, within=10)
        finally:
            await takes.stop()


class Unheard(Book):
    """Keeps what is written, and does not answer once; meanwhile a replay sends the letter back."""

    is_heard = False

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        async with super().writing() as connection:
            yield connection
        if not self.is_heard:
            self.is_heard = True
            async with super().writing() as connection:
                await connection.execute(update(LETTERS).values(state=LetterState.SENT.value))
            raise LedgerAway("no answer")


async def test_a_letter_that_was_filed_unheard_has_not_come_back(
    rabbit_url: str, database_url: str
) -> None:
    async with ledger(database_url):
        book = Unheard(database_url)
        counted = Counting()
        async with taking(rabbit_url, book, [b"1"], Inquest(Seal()), Source(QUEUE), counted):
            await eventually(lambda: counted.total == Filed(copies=1), within=10)
        (row,) = await letters(book)
        await book.close()
    assert (row["state"], row["burials"]) == (LetterState.SENT, 1)


async def holds(book: Book, letters: int) -> bool:
    return await count(book) == letters


async def is_left(channel: AbstractChannel, body: bytes) -> bool:
    """Only this letter is in the queue, where the broker has it back."""
    queue = await channel.get_queue(QUEUE)
    letter = await queue.get(fail=False)
    return letter is not None and letter.body == body and letter.redelivered is True
