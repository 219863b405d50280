"""The limit: RabbitMQ's own shovel, which moves letters without leaving the broker."""

from __future__ import annotations

import asyncio
import json
import time

from aio_pika.abc import AbstractChannel

from benchmarks.hop import IN, OUT, hop
from benchmarks.letters import arrived, depth
from deploy.local.rabbitmq import Node

PLUGIN, NAME = "rabbitmq_shovel", "bench"
PREFETCH = 1000  # its default


async def relay(node: Node, count: int) -> dict[str, float]:
    """Move every letter once, confirmed; timed by what arrives."""
    place = node.url.rstrip("/")
    wanted = {
        "src-protocol": "amqp091",
        "src-uri": place,
        "src-queue": IN,
        "src-prefetch-count": PREFETCH,
        "dest-protocol": "amqp091",
        "dest-uri": place,
        "dest-exchange": "bench.outbox",
        "dest-exchange-key": "binding.order.created.1",
        "ack-mode": "on-confirm",
    }
    async with hop(node.url, count) as channel:
        told = asyncio.to_thread(node.ctl, "set_parameter", "shovel", NAME, json.dumps(wanted))
        telling = asyncio.ensure_future(told)
        first = await _first(channel)
        began = time.perf_counter()
        await arrived(channel, OUT, count, pause=0.005)
        seconds = time.perf_counter() - began
        await telling
        await asyncio.to_thread(node.ctl, "clear_parameter", "shovel", NAME)
    return {"seconds": seconds * count / (count - first)}


async def _first(channel: AbstractChannel) -> int:
    async with asyncio.timeout(60):
        while not (here := await depth(channel, OUT)):  # noqa: ASYNC110  # a broker tells nobody
            await asyncio.sleep(0.002)
        return here
