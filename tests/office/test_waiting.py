"""The delay queues, counted on a real broker by how long letters wait in them."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from datetime import timedelta
from functools import partial

from aio_pika import Message

from service.edge.tap import tap_on
from service.flows.settlement.policy import Rules
from service.flows.settlement.topology import tables
from service.office.waiting import Depths, delay_queues, watch
from service.topology.tables import DEFAULT, Topology, durable_queue, expires_to
from tests.kit.broker import channel_to
from tests.servers.waiting import eventually

DELAYS = Topology(
    queues=tuple(
        durable_queue(name, expires_to(DEFAULT, "nowhere", timedelta(minutes=minutes)))
        for name, minutes in (("waits-a", 5), ("waits-b", 5), ("waits-c", 30))
    )
)


def test_a_queue_that_is_consumed_is_no_delay() -> None:
    rules = Rules()
    topology = tables(rules.max_retries, rules.ttl, rules.kind) + DELAYS
    queues = delay_queues(topology, frozenset({"settlement.requested.worker"}))
    assert queues == {"waits-a": "5m", "waits-b": "5m", "waits-c": "30m"}


async def test_letters_that_wait_are_counted_and_unknown_while_nobody_can_say(
    rabbit_url: str,
) -> None:
    told: list[Depths] = []
    queues = delay_queues(DELAYS, frozenset())
    look = partial(tap_on, rabbit_url, within=5)
    watching = asyncio.create_task(watch(look, queues, told.append, every=0.05))
    try:
        await eventually(lambda: bool(told) and all(map(math.isnan, told[-1].values())))
        async with channel_to(rabbit_url) as channel:
            for queue in DELAYS.queues:
                await channel.declare_queue(
                    queue.name, durable=True, arguments=dict(queue.arguments)
                )
            for name in ("waits-a", "waits-a", "waits-b", "waits-c"):
                await channel.default_exchange.publish(Message(b""), name)
            await eventually(lambda: told[-1] == {"5m": 3.0, "30m": 1.0})
            for name in queues:
                await channel.queue_delete(name)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
