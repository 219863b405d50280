"""The service with consumers from its settings, on RabbitMQ and on Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import aio_pika
from aio_pika.abc import AbstractChannel

from service.core import marks as names
from service.core.marks import Marks, Seal, read
from tests.kit.broker import channel_to, depth, drain
from tests.kit.fixtures import sqlite_in
from tests.kit.kafka import Outside, list_of
from tests.kit.process import KEY, Service, environment, running
from tests.servers.kafka import MockKafka
from tests.servers.waiting import eventually

HANDLER = "tests.flows.kdlq.team:handle"
QUEUES = ("svc", "svc.again", "svc.dlq", "kdlq.wait.svc.again", "kdlq.skipped")
ON_RABBIT = (
    f'{{source="svc", dlq="svc.dlq", redelivery="svc.again", redelivery_delay="100ms",'
    f' max_redeliveries=1, max_kills=1, handler="{HANDLER}"}},'
    f'{{source="svc.dlq", dlq="svc.dlq", max_redeliveries=1, max_kills=1, handler="{HANDLER}"}}'
)
ON_KAFKA = (
    f'{{broker="kafka", source="svc", dlq="svc.dlq", group="svc", max_kills=1,'
    f' handler="{HANDLER}", marker="kafka"}}'
)


def settings(url: str, folder: Path, consumers: str, **more: str) -> Mapping[str, str]:
    """The room kdlq alone."""
    own = {"DLO_FLOWS": '["kdlq"]', "DLO_KDLQ__CONSUMERS": f"[{consumers}]", **more}
    return environment(url, sqlite_in(folder), **own)


async def skipped(channel: AbstractChannel, count: int) -> list[Mapping[str, object]]:
    """The headers of what is in kdlq.skipped, once so many are."""

    async def there() -> bool:
        return await depth(channel, "kdlq.skipped") >= count

    await eventually(there, 15)
    letters = await drain(channel, "kdlq.skipped")
    assert len(letters) == count
    return [letter.headers for letter in letters]


async def test_consumers_on_rabbitmq(rabbit_url: str, tmp_path: Path) -> None:
    async with channel_to(rabbit_url) as channel:
        for queue in QUEUES:
            await channel.queue_delete(queue)
        # A queue of the user's, with arguments of its own: it is left as it stands.
        await channel.declare_queue("svc", durable=True, arguments={"x-max-length": 1000})
        service = Service(settings(rabbit_url, tmp_path, ON_RABBIT), tmp_path)
        async with running(service):
            for what in ("nothing", "redeliver", "error", "raise"):
                message = aio_pika.Message(json.dumps({"do": what}).encode(), message_id=what)
                await channel.default_exchange.publish(message, "svc")
            left = await skipped(channel, 3)
            assert {headers[names.LETTER] for headers in left} == {"redeliver", "error", "raise"}
            for headers in left:
                known = read(headers, Seal(KEY.encode()))
                assert isinstance(known, Marks)
                assert (known.flow, known.origin.queue) == ("kdlq", "svc")
                assert headers[names.KILLS] == 1
                assert headers[names.MARKER] == HANDLER
            for queue in QUEUES:
                assert await depth(channel, queue) == 0
            assert 'dlo_letters_discarded_total{flow="kdlq"} 3.0' in service.get("/metrics")[1]
            assert len(service.verdicts("discard")) == 3
        for queue in QUEUES:
            await channel.queue_delete(queue)


async def test_consumers_on_kafka(rabbit_url: str, tmp_path: Path) -> None:
    kafka = MockKafka()
    kafka.create("svc", "svc.dlq")
    outside = Outside(kafka.address)
    more = {"DLO_KDLQ__KAFKA__SERVERS": f'["{kafka.address}"]'}
    service = Service(settings(rabbit_url, tmp_path, ON_KAFKA, **more), tmp_path)
    try:
        async with channel_to(rabbit_url) as channel, running(service):
            error = b'{"do": "error"}'
            binary = [("binary", b"\xff"), ("null", None), ("n" * 300, b"long")]
            outside.send("svc", error)
            outside.send("svc", error, [(names.KILLS, b"1"), *binary])
            (headers,) = await skipped(channel, 1)
            known = read(headers, Seal(KEY.encode()))
            assert isinstance(known, Marks)
            assert (known.letter, known.origin.queue) == ("svc/0/1", "kafka:svc")
            assert (headers[names.MARKER], headers["binary"]) == ("kafka", bytearray(b"\xff"))

            async def committed() -> bool:
                return await asyncio.to_thread(outside.left, "svc", "svc") == 0

            await eventually(committed, 5)
            (dead,) = await asyncio.to_thread(outside.read, "svc.dlq")
            assert dict(list_of(dead))[names.KILLS] == b"1"
            assert service.stop() == 0
            for queue in QUEUES:
                await channel.queue_delete(queue)
    finally:
        kafka.close()
    assert "Traceback" not in service.said()
