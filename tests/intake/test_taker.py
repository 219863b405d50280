"""One taker on a real queue: what the database will not have holds up nothing, and is not lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from aio_pika import Message
from aio_pika.abc import AbstractChannel

from service.core.marks import Seal
from service.edge.wire import Delivered
from service.ledger.book import Book
from service.ledger.burial import Burial
from service.ledger.filing import Filed
from service.office.inquest import Inquest, Source
from service.office.intake_desk import Desk
from service.office.taker import Taker
from tests.intake.reading import causes, count, ledger, letters
from tests.kit.broker import channel_to, clean
from tests.servers.waiting import eventually

QUEUE = "shop.dlq"


class Silent:
    """Counts nothing."""

    def filed(self, flow: str, filed: Filed) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Careless(Inquest):
    """Reads NUL into letters whose body says so, which PostgreSQL refuses in any text."""

    def hold(self, taken: Delivered, source: Source, now: datetime) -> Burial:
        burial = Inquest.hold(self, taken, source, now)
        if taken.body == b"stumble":
            raise RuntimeError("a bug")
        bad = taken.body in (b"bad", b"worse")
        return replace(burial, error="\x00") if bad else burial

    def bare(self, taken: Delivered, source: Source, now: datetime, why: str) -> Burial:
        burial = Inquest.bare(self, taken, source, now, why)
        return replace(burial, error="\x00") if taken.body == b"worse" else burial


@asynccontextmanager
async def taking(
    url: str, book: Book, bodies: Sequence[bytes], inquest: Inquest, source: Source
) -> AsyncIterator[tuple[Taker, AbstractChannel]]:
    """A taker on a queue with these letters."""
    await clean(url, QUEUE)
    async with channel_to(url) as channel:
        await channel.declare_queue(QUEUE, durable=True)
        for number, body in enumerate(bodies):
            letter = Message(body, message_id=str(number), headers={"x-dlo-fingerprint": "f"})
            await channel.default_exchange.publish(letter, QUEUE)
        taker = Taker(Desk(url, book, inquest, Silent(), prefetch=10, batch=5), source)
        taker.start()
        try:
            yield taker, channel
        finally:
            await taker.stop()
            await channel.queue_delete(QUEUE)


async def test_a_letter_that_the_database_refuses_is_filed_with_its_bytes_alone(
    rabbit_url: str, postgres_url: str
) -> None:
    bodies = (b"good", b"bad", b"good", b"worse", b"stumble", *[b"good"] * 15)
    async with (
        ledger(postgres_url) as book,
        taking(rabbit_url, book, bodies, Careless(Seal()), Source(QUEUE)) as (taker, channel),
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
        assert "1 letters cannot be filed" in taker.held
        await taker.stop()
        await eventually(lambda: is_left(channel, b"worse"), within=5)


async def test_a_queue_of_discards_is_only_recorded(rabbit_url: str, database_url: str) -> None:
    source = Source(QUEUE, "kdlq", discarded=True)
    async with (
        ledger(database_url) as book,
        taking(rabbit_url, book, [b"1", b"2"], Inquest(Seal()), source),
    ):
        await eventually(lambda: holds(book, 2), within=10)
        assert {row["state"] for row in await letters(book)} == {"discarded"}


async def holds(book: Book, letters: int) -> bool:
    return await count(book) == letters


async def is_left(channel: AbstractChannel, body: bytes) -> bool:
    """Only this letter is in the queue, where the broker has it back."""
    queue = await channel.get_queue(QUEUE)
    letter = await queue.get(fail=False)
    return letter is not None and letter.body == body and letter.redelivered is True
