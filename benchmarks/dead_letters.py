"""Dead letters as intake meets them: 1 KiB, persistent, with the marks of the central processor."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import aio_pika

from benchmarks.letters import arrived
from service.core.marks import ERROR, ERROR_TYPE, REASON, Marks, Origin, Seal, stamp

QUEUE = "bench.dead"
SEAL = Seal(b"a key for the benchmark, long enough")
BODY = b"x" * 1000
REST = 3.0
"""Seconds until RabbitMQ has done with the loading: dead letters lie in their queue for a while."""
SINCE = datetime(2026, 11, 18, tzinfo=UTC)


async def preload(url: str, count: int) -> None:
    """Fill the queue, each letter with an id and an error of its own, and let it come to rest."""
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel(publisher_confirms=False)
        await channel.queue_delete(QUEUE)
        await channel.declare_queue(QUEUE, durable=True)
        for start in range(0, count, 500):
            numbers = range(start, min(start + 500, count))
            await asyncio.gather(
                *(channel.default_exchange.publish(letter(n), QUEUE) for n in numbers)
            )
        await arrived(channel, QUEUE, count)
    await asyncio.sleep(REST)


def letter(number: int) -> aio_pika.Message:
    """A letter that the processor gave up."""
    id_ = f"letter-{number}"
    known = Marks(id_, "dlq_processor", Origin("orders", "shop", "order.created"), 3, SINCE)
    error = f"order {number} of customer 'c-{number % 97}' timed out after 30.0 s"
    headers: dict[str, Any] = {
        "tenant": "acme",
        "trace": f"{number:032x}",
        **stamp(known, SEAL),
        ERROR: error,
        ERROR_TYPE: f"acme.errors.Timeout{number % 4}",
        REASON: f"failed 4 times: {error}",
    }
    return aio_pika.Message(
        BODY + f"{number:024}".encode(),
        headers=headers,
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=id_,
        correlation_id=f"{number:032x}",
    )
