"""Foreign dead-letter queues, filled by a plain program, adopted: right causes, origin found."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from aio_pika import Message
from aio_pika.abc import AbstractChannel
from pamqp.common import FieldTable

from service.ledger.adopted import adopt, leave
from service.ledger.book import Book
from service.ledger.tables import AUDIT
from tests.intake.reading import causes, count, ledger, letters
from tests.kit.broker import channel_to, clean, depth
from tests.kit.process import Service, environment, running
from tests.kit.recorded import FRAMEWORKS
from tests.ledger.burials import rows
from tests.servers.waiting import eventually

LATE, FOREIGN, DISCARDS = "late.dlq", "shop.dlq", "shop.sells"
QUEUES = (*(message.queue for message in FRAMEWORKS), LATE, FOREIGN, DISCARDS)


@asynccontextmanager
async def foreign_queues(url: str) -> AsyncIterator[AbstractChannel]:
    """Queues that somebody else declared, with arguments that are not ours."""
    await clean(url, *QUEUES)
    async with channel_to(url) as channel:
        for message in FRAMEWORKS:
            await channel.declare_queue(message.queue, durable=True, arguments={"x-max-length": 99})
        try:
            yield channel
        finally:
            for queue in QUEUES:
                await channel.queue_delete(queue)


async def test_letters_of_three_frameworks_tell_where_and_why_they_died(
    rabbit_url: str, database_url: str, tmp_path: Path
) -> None:
    async with foreign_queues(rabbit_url) as channel, ledger(database_url) as book:
        for number, message in enumerate(FRAMEWORKS):
            for again in range(3):
                letter = Message(
                    f'{{"n": {number}{again}}}'.encode(),
                    headers=dict(message.headers),
                    message_id=f"{message.queue}-{again}",
                )
                await channel.default_exchange.publish(letter, message.queue)
        adopted = "[" + ",".join(f'{{queue = "{m.queue}"}}' for m in FRAMEWORKS) + "]"
        given = environment(rabbit_url, database_url, DLO_LEDGER__INTAKE="true", DLO_ADOPT=adopted)
        async with running(Service(given, tmp_path)) as service:
            await eventually(lambda: holds(book, 9), within=15)
            assert await causes(book) == {message.title: 3 for message in FRAMEWORKS}
            found = await letters(book)
            for message in FRAMEWORKS:
                mine = [row for row in found if row["queue"] == message.queue]
                assert {row["origin_queue"] for row in mine} == {message.origin}
                assert {row["error_type"] for row in mine} == {message.error_type}
                assert {row["place"] for row in mine} == {message.place}
                assert {row["retries"] for row in mine} == {message.retries}
                assert {row["flow"] for row in mine} == {"adopted"}
                assert await depth(channel, message.queue) == 0
                assert mine[0]["facts"]["headers"].keys() == message.headers.keys()
            assert service.stop() == 0


async def test_a_queue_is_adopted_and_left_while_the_service_runs(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    given = environment(rabbit_url, sqlite_url, DLO_LEDGER__INTAKE="true")
    now = datetime.now(UTC)
    async with (
        foreign_queues(rabbit_url) as channel,
        ledger(sqlite_url) as book,
        running(Service(given, tmp_path)) as service,
    ):
        assert await adopt(book, LATE, "ann", now)
        assert not await adopt(book, LATE, "ann", now)
        assert await adopt(book, "retry-queue", "ann", now)
        await eventually(
            lambda: says(service, "intake_away", f"there is no queue {LATE}"), within=9
        )
        await eventually(lambda: says(service, "not_adopted", "retry-queue is a queue"), within=9)
        assert service.is_ready(), "a queue that others have not made yet holds up nothing"
        await channel.declare_queue(LATE, durable=True)
        await channel.default_exchange.publish(Message(b"1", message_id="1"), LATE)
        await eventually(lambda: holds(book, 1), within=9)
        assert await leave(book, LATE, "ann", now)
        assert not await leave(book, LATE, "ann", now)
        await eventually(lambda: nobody_takes(channel, LATE), within=9)
        await channel.default_exchange.publish(Message(b"2", message_id="2"), LATE)
        await eventually(lambda: waits(channel, LATE), within=5)
        assert await count(book) == 1
        deeds = [(row["who"], row["action"]) for row in await rows(book, AUDIT)]
        assert deeds == [("ann", "queue.adopt"), ("ann", "queue.adopt"), ("ann", "queue.leave")]


async def test_what_the_broker_writes_is_enough(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    """A queue that expires its letters to a dead-letter queue of its own, and nobody's headers."""
    dies: FieldTable = {
        "x-message-ttl": 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": FOREIGN,
    }
    given = environment(
        rabbit_url,
        sqlite_url,
        DLO_LEDGER__INTAKE="true",
        DLO_ADOPT=f'[{{queue = "{FOREIGN}"}}]',
    )
    async with foreign_queues(rabbit_url) as channel, ledger(sqlite_url) as book:
        await channel.declare_queue(FOREIGN, durable=True)
        await channel.declare_queue(DISCARDS, durable=True, arguments=dies)
        for _ in range(2):  # the same bytes twice, and no id: two letters
            await channel.default_exchange.publish(Message(json.dumps({}).encode()), DISCARDS)
        async with running(Service(given, tmp_path)):
            await eventually(lambda: holds(book, 2), within=9)
            one, other = await letters(book)
            assert (one["origin_queue"], one["reason"]) == (DISCARDS, f"expired in {DISCARDS}")
            assert one["id"] != other["id"]
            assert await causes(book) == {f"expired in {DISCARDS}": 2}


async def holds(book: Book, letters: int) -> bool:
    return await count(book) == letters


def says(service: Service, action: str, words: str) -> bool:
    return any(words in line["event"] for line in service.lines(action))


async def nobody_takes(channel: AbstractChannel, queue: str) -> bool:
    declared = await channel.declare_queue(queue, passive=True)
    return not declared.declaration_result.consumer_count


async def waits(channel: AbstractChannel, queue: str) -> bool:
    return await depth(channel, queue) == 1
