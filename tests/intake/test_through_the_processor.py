"""Letters of a foreign team, through the real processor, into the ledger: right causes, right counts."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel

from service.ledger.book import Book
from tests.intake.reading import causes, count, ledger, letters
from tests.kit.broker import channel_to, clean, depth
from tests.kit.process import Service, environment, running
from tests.kit.shop import open_shop, reject_all
from tests.servers.waiting import eventually

# The real number: DLO_TEST_INTAKE=10000.
LETTERS = int(os.environ.get("DLO_TEST_INTAKE") or 400)
TRACE = """com.acme.OutOfStock: sku {n}
\tat org.springframework.amqp.Listener.onMessage(Listener.java:1)
\tat com.acme.Stock.take(Stock.java:42)
"""
KINDS: tuple[dict[str, str], ...] = (
    {},  # nothing but the rejection
    {"x-dlo-fingerprint": "the bank is closed"},
    {"x-exception-stacktrace": TRACE, "x-exception-message": "sku {n}"},
    {"MT-Fault-ExceptionType": "Acme.Late", "MT-Fault-Message": "order {n} is late"},
)
TITLES = (
    "rejected in orders",
    "the bank is closed",
    "com.acme.OutOfStock in com.acme.Stock.take (Stock.java:42)",
    "Acme.Late: order <n> is late",
)


async def test_four_causes_have_the_right_counts(
    rabbit_url: str, database_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    given = environment(
        rabbit_url, database_url, DLO_LEDGER__INTAKE="true", DLO_ROUTES='{"order.created" = 1}'
    )
    async with (
        ledger(database_url) as book,
        running(Service(given, tmp_path)) as service,
        channel_to(rabbit_url) as channel,
    ):
        shop = await open_shop(channel)
        await shop.consume(reject_all)
        for start in range(0, LETTERS, 500):
            some = range(start, min(start + 500, LETTERS))
            await asyncio.gather(*(shop.exchange.publish(letter(n), "order.created") for n in some))
        await eventually(lambda: filed(book), within=60 + LETTERS / 100, pause=0.2)
        expected = Counter(TITLES[n % 4] for n in range(LETTERS))
        assert await causes(book) == expected
        found = await letters(book)
        assert {row["origin_queue"] for row in found} == {"orders"}
        assert {row["routing_key"] for row in found} == {"order.created"}
        assert {row["retries"] for row in found} == {1}
        assert {row["state"] for row in found} == {"parked"}
        assert {row["letter"] for row in found} == {f"letter-{n}" for n in range(LETTERS)}
        await eventually(lambda: is_empty(channel), within=5)
        parked = f'dlo_parked_letters{{flow="dlq_processor"}} {LETTERS}.0'
        await eventually(lambda: parked in service.get("/metrics")[1], within=10)
        assert service.stop() == 0
    assert "Traceback" not in service.said()


async def filed(book: Book) -> bool:
    seen = await count(book)
    assert seen >= LETTERS, f"{seen} of {LETTERS}"
    return True


async def is_empty(channel: AbstractChannel) -> bool:
    return await depth(channel, "dlq-queue") == 0


def letter(number: int) -> Message:
    """A letter whose headers tell of one of four causes."""
    headers = {name: value.format(n=number) for name, value in KINDS[number % 4].items()}
    return Message(
        f'{{"order": {number}}}'.encode(),
        headers=dict(headers),
        message_id=f"letter-{number}",
        delivery_mode=DeliveryMode.PERSISTENT,
    )
