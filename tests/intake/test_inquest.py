"""What an inquest makes of names that no broker has, and who watches over the queues."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from service.core.marks import Seal
from service.edge.fields import encode_marks
from service.edge.wire import Delivered
from service.edge.wire.consumer import Consumer
from service.ledger.book import Book
from service.office import intake
from service.office.inquest import Inquest, Source
from service.office.intake import Intake
from service.office.intake_desk import Desk
from tests.intake.test_taker import Silent
from tests.kit.wire import properties
from tests.ledger.burials import NOW
from tests.servers.waiting import eventually

NOWHERE = b"\x00\x3c\x00\x3c" + bytes(1 + 8 + 1 + 1 + 1)
"""A delivery with an empty tag, exchange and key."""


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("größe", "größe"),
        ("q" * 255, "q" * 255),
        ("ö" * 127, "ö" * 127),
        ("ö" * 128, ""),  # 256 bytes
        ("\x00" * 200, ""),  # as a database keeps them, 600 bytes
    ],
)
def test_a_name_that_cannot_be_sent_to_is_no_origin(said: str, kept: str) -> None:
    table = encode_marks({"NServiceBus.FailedQ": said})
    taken = Delivered(cast(Consumer, None), NOWHERE, properties(headers=table), b"")
    burial = Inquest(Seal()).hold(taken, Source("error"), NOW)
    assert (burial.origin_queue, burial.routing_key) == (kept, kept)


async def test_adopted_queues_are_looked_at_whatever_happens(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "WATCH_SECONDS", 0.01)
    looks = 0

    async def adopted() -> tuple[str, ...]:
        nonlocal looks
        looks += 1
        raise ValueError("a bug")

    book = Book(sqlite_url)
    watch = Intake(Desk("amqp://", book, Inquest(Seal()), Silent()), (), adopted, frozenset())
    watch.start()
    try:
        await eventually(lambda: looks > 1, within=5)
    finally:
        await asyncio.wait_for(watch.stop(), 5)
        await book.close()
