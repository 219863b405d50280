"""A peer: the same hop in bare aio-pika, as a careful engineer would write it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import aio_pika
import uvloop
from aio_pika.abc import AbstractIncomingMessage

from benchmarks.hop import IN, hop
from benchmarks.letters import KEY, PREFETCH, cpu

ROUTES = {KEY: 3}


async def relay(url: str, count: int) -> dict[str, float]:
    """Move every letter once: look up its route, publish it confirmed, acknowledge it."""
    async with hop(url, count) as channel:
        await channel.set_qos(prefetch_count=PREFETCH)
        outbox = await channel.get_exchange("bench.outbox")
        done, left = asyncio.Event(), count
        used, began = 0.0, 0.0

        async def move(message: AbstractIncomingMessage) -> None:
            nonlocal left, began, used
            if not began:
                began, used = time.perf_counter(), cpu()
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

        await (await channel.get_queue(IN)).consume(move)
        await done.wait()
        return {"seconds": time.perf_counter() - began, "cpu": cpu() - used}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(relay(sys.argv[1], int(sys.argv[2])))))
