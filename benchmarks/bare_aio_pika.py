"""The peer: the same hop in bare aio-pika, as a careful engineer would write it."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any

import aio_pika
import uvloop
from aio_pika.abc import AbstractIncomingMessage

from benchmarks.letters import KEY, preload

ROUTES = {KEY: 3}


async def relay(url: str, count: int) -> dict[str, float]:
    """Move every letter once: look up its route, publish it confirmed, acknowledge it."""
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel(on_return_raises=True)
        await channel.set_qos(prefetch_count=100)
        inbox = await channel.declare_exchange("bench.inbox", "topic", durable=True)
        outbox = await channel.declare_exchange("bench.outbox", "topic", durable=True)
        queue = await channel.declare_queue("bench.in", durable=True)
        target = await channel.declare_queue("bench.out", durable=True)
        await queue.bind(inbox, "dead")
        await target.bind(outbox, "binding.#.1")
        await queue.purge()
        await target.purge()
        await preload(url, "bench.inbox", "dead", "bench.in", count)
        done, left = asyncio.Event(), count
        cpu, began = 0.0, 0.0

        async def hop(message: AbstractIncomingMessage) -> None:
            nonlocal left, began, cpu
            if not began:
                began, cpu = time.perf_counter(), _cpu()
            headers = dict(message.headers)
            death: Any = headers.pop("x-death")  # the broker wrote it
            key = death[0]["routing-keys"][0]
            assert ROUTES[key] > 0
            headers["x-retry-count"] = 1
            copy = aio_pika.Message(
                message.body,
                headers=headers,
                content_type=message.content_type,
                delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                message_id=message.message_id,
                correlation_id=message.correlation_id,
            )
            await outbox.publish(copy, f"binding.{key}.1", mandatory=True)
            await message.ack()
            left -= 1
            if not left:
                done.set()

        await queue.consume(hop)
        await done.wait()
        seconds = time.perf_counter() - began
        used = _cpu() - cpu
        await channel.queue_delete("bench.in")
        await channel.queue_delete("bench.out")
        return {"seconds": seconds, "cpu": used}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(uvloop.run(relay(sys.argv[1], int(sys.argv[2])))))
