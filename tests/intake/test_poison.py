"""Every poison that RabbitMQ accepts, in one batch: all are filed, byte for byte, none stops another."""

from __future__ import annotations

from service.core.marks import Seal
from service.edge.properties import open_properties
from service.ledger.book import Book
from service.office.inquest import Inquest, Source
from service.office.intake_desk import Desk
from service.office.taker import Taker
from tests.intake.reading import count, ledger, letters
from tests.intake.test_taker import QUEUE, Silent
from tests.kit.broker import channel_to, clean
from tests.kit.wire import counted, field, properties, wire_to
from tests.poison.poisons import FORGED, POISONS
from tests.servers.waiting import eventually

# What a database would not take as text or JSON.
HOSTILE = {
    "NUL and a quote": field("n", b"S", counted(b"a\x00b'\"\\u0000")),
    "a half character": field("n", b"S", counted(b"\xed\xa0\x80")),
    "NUL in the name": b"\x03a\x00bt\x01",
    "an error full of NUL": field("x-dlo-error", b"S", counted(b"\x00" * 5000)),
    "a fingerprint of bytes": field("x-dlo-fingerprint", b"x", counted(b"\xff\x00")),
    "an origin that is no name": field("NServiceBus.FailedQ", b"S", counted(b"\x00" * 400)),
}
LETTERS = [
    *((poison.properties, poison.body) for poison in POISONS.values()),
    *((properties(headers=table), b"x") for table in (*FORGED.values(), *HOSTILE.values())),
    (properties(message_id=b"\x00\x00"), b"\x00\xff"),
    (properties(), b""),
]


async def test_all_are_filed(rabbit_url: str, database_url: str) -> None:
    await clean(rabbit_url, QUEUE)
    async with (
        ledger(database_url) as book,
        channel_to(rabbit_url) as channel,
        wire_to(rabbit_url) as wire,
    ):
        await channel.declare_queue(QUEUE, durable=True)
        await wire.publish("", QUEUE, LETTERS)
        taker = Taker(Desk(rabbit_url, book, Inquest(Seal()), Silent()), Source(QUEUE))
        taker.start()
        try:
            await eventually(lambda: holds_all(book), within=15)
            assert not taker.held
        finally:
            await taker.stop()
        found = await letters(book)
        told = [row["reason"] for row in found if row["reason"].startswith("it could not be read")]
        assert told == [], "none needed to be filed with its bytes alone"
        kept = {(row["headers"], row["body"]) for row in found}
        assert kept == {(open_properties(said).table, body) for said, body in LETTERS}
        await channel.queue_delete(QUEUE)


async def holds_all(book: Book) -> bool:
    seen = await count(book)
    assert seen == len(LETTERS), f"{seen} of {len(LETTERS)}"
    return True
