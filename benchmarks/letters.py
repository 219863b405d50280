"""Letters as the processor meets them: persistent, dead-lettered once by the broker itself."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence

import aio_pika
from aio_pika.abc import AbstractChannel
from pamqp.common import FieldTable

KEY = "order.created"
KIB = 1024
PREFETCH = 300  # the service's default, for all


async def preload(
    url: str,
    exchange: str,
    key: str,
    target: str,
    count: int,
    size: int = KIB,
    keys: Sequence[str] = (KEY,),
) -> None:
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
        body, step = b"x" * size, max(1, min(500, 32 * KIB * KIB // size))
        for start in range(0, count, step):
            numbers = range(start, min(start + step, count))
            letters = ((_letter(n, body), keys[n % len(keys)]) for n in numbers)
            await asyncio.gather(*(shop.publish(letter, its) for letter, its in letters))
        await arrived(channel, target, count)
        await channel.queue_delete("bench.source")


async def arrived(channel: AbstractChannel, queue: str, count: int, pause: float = 0.1) -> None:
    """Wait until so many letters are ready in a queue."""
    async with asyncio.timeout(300):
        while await depth(channel, queue) < count:  # noqa: ASYNC110  # a broker tells nobody
            await asyncio.sleep(pause)


async def depth(channel: AbstractChannel, queue: str) -> int:
    """How many letters are ready in a queue."""
    declared = await channel.declare_queue(queue, passive=True)
    return declared.declaration_result.message_count or 0


def cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _letter(number: int, body: bytes) -> aio_pika.Message:
    return aio_pika.Message(
        body,
        headers={"tenant": "acme", "trace": f"{number:032x}"},
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=f"letter-{number}",
        correlation_id=f"{number:032x}",
    )
