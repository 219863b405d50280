"""`kill -9` during intake, again and again: no letter is lost, none is counted twice."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from functools import partial
from pathlib import Path

from aio_pika import DeliveryMode, Message

from service.ledger.book import Book
from service.ledger.tables import CAUSE_HOURS, LETTER_COUNTS
from tests.intake.reading import causes, count, ledger, letters
from tests.kit.broker import channel_to, clean
from tests.kit.process import Service, environment
from tests.ledger.burials import rows
from tests.servers.waiting import eventually

QUEUE = "shop.dlq"
KILLS = int(os.environ.get("DLO_TEST_KILLS") or 10)
PER_KILL = 200
PREFETCH = 60


async def test_no_letter_is_lost_or_counted_twice(
    rabbit_url: str, database_url: str, tmp_path: Path
) -> None:
    """The database takes turns in the whole suite: PostgreSQL with 10 kills, SQLite with 3."""
    kills = KILLS if "postgres" in database_url else max(3, KILLS // 4)
    seed = int(os.environ.get("DLO_TEST_SEED") or random.randrange(10**6))
    print(f"seed {seed}")
    chance, total = random.Random(seed), kills * PER_KILL
    await clean(rabbit_url, QUEUE)
    service = Service(settings(rabbit_url, database_url), tmp_path)
    async with ledger(database_url) as book, channel_to(rabbit_url) as channel:
        await channel.declare_queue(QUEUE, durable=True)
        sending = [channel.default_exchange.publish(letter(n), QUEUE) for n in range(total)]
        await asyncio.gather(*sending)
        try:
            for kill in range(kills):
                service.spawn()
                upto = kill * PER_KILL + chance.randrange(1, PER_KILL)
                await eventually(partial(passed, book, upto), within=30, pause=0.001)
                service.kill()
            service.spawn()
            await eventually(lambda: passed(book, total), within=60, pause=0.1)
            await eventually(lambda: service.is_ready(), within=20)
            assert await asyncio.to_thread(service.stop) == 0
        finally:
            service.kill()
        await reckon(book, total)
        declared = await channel.declare_queue(QUEUE, passive=True)
        assert declared.declaration_result.message_count == 0
        await channel.queue_delete(QUEUE)


async def reckon(book: Book, total: int) -> None:
    """Every letter is there once, and every figure says the same."""
    found = await letters(book)
    assert Counter(row["letter"] for row in found) == Counter(f"l{n}" for n in range(total))
    assert {row["burials"] for row in found} == {1}
    expected = {f"Boom: kind {'abcd'[n]}": total // 4 for n in range(4)}
    assert await causes(book) == expected
    assert sum(row["burials"] for row in await rows(book, CAUSE_HOURS)) == total
    assert sum(row["letters"] for row in await rows(book, LETTER_COUNTS)) == total


def settings(rabbit_url: str, database_url: str) -> dict[str, str]:
    return environment(
        rabbit_url,
        database_url,
        DLO_LEDGER__INTAKE="true",
        DLO_LEDGER__PREFETCH=str(PREFETCH),
        DLO_LEDGER__BATCH="20",
        DLO_ADOPT=f'[{{queue = "{QUEUE}"}}]',
    )


async def passed(book: Book, upto: int) -> bool:
    return await count(book) >= upto


def letter(number: int) -> Message:
    return Message(
        str(number).encode(),
        headers={"x-dlo-error": f"kind {'abcd'[number % 4]}", "x-dlo-error-type": "Boom"},
        message_id=f"l{number}",
        delivery_mode=DeliveryMode.PERSISTENT,
    )
