"""The hop that the service's peers make: `bench.in` to `bench.out`, by way of an exchange."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractChannel

from benchmarks.letters import preload

IN, OUT = "bench.in", "bench.out"


@asynccontextmanager
async def hop(url: str, count: int) -> AsyncIterator[AbstractChannel]:
    """The queues, `bench.in` full of letters; gone afterwards."""
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel(on_return_raises=True)
        inbox = await channel.declare_exchange("bench.inbox", "topic", durable=True)
        outbox = await channel.declare_exchange("bench.outbox", "topic", durable=True)
        for name in (IN, OUT):
            await channel.queue_delete(name)
        queue = await channel.declare_queue(IN, durable=True)
        target = await channel.declare_queue(OUT, durable=True)
        await queue.bind(inbox, "dead")
        await target.bind(outbox, "binding.#.1")
        await preload(url, "bench.inbox", "dead", IN, count)
        yield channel
        for name in (IN, OUT):
            await channel.queue_delete(name)
