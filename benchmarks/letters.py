"""Letters as the processor meets them: 1 KiB, persistent, dead-lettered once by the broker itself."""

from __future__ import annotations

import asyncio

import aio_pika
from aio_pika.abc import AbstractChannel
from pamqp.common import FieldTable

KEY = "order.created"
BODY = b"x" * 1024


async def preload(url: str, exchange: str, key: str, target: str, count: int) -> None:
    """Fill `target` with letters that expired in `bench.source`: their x-death is the broker's own."""
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        died: FieldTable = {
            "x-message-ttl": 1,
            "x-dead-letter-exchange": exchange,
            "x-dead-letter-routing-key": key,
        }
        await channel.queue_delete("bench.source")
        await channel.declare_queue("bench.source", durable=True, arguments=died)
        shop = await channel.declare_exchange("bench.shop", "topic", durable=True)
        await (await channel.get_queue("bench.source")).bind(shop, "#")
        for start in range(0, count, 500):
            numbers = range(start, min(start + 500, count))
            await asyncio.gather(*(shop.publish(_letter(n), KEY) for n in numbers))
        await arrived(channel, target, count)
        await channel.queue_delete("bench.source")


def _letter(number: int) -> aio_pika.Message:
    return aio_pika.Message(
        BODY,
        headers={"tenant": "acme", "trace": f"{number:032x}"},
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=f"letter-{number}",
        correlation_id=f"{number:032x}",
    )


async def arrived(channel: AbstractChannel, queue: str, count: int) -> None:
    """Wait until so many letters are ready in a queue."""
    async with asyncio.timeout(120):
        while True:
            declared = await channel.declare_queue(queue, passive=True)
            if (declared.declaration_result.message_count or 0) >= count:
                return
            await asyncio.sleep(0.1)
