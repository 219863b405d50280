"""A case run on a real RabbitMQ, under names nobody else has, and cleared away after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from pamqp.commands import Basic

from service.topology.tables import Topology
from tests.simulation.cases import Fate, LetterPlan, World, fate_of
from tests.simulation.sightings import Sightings, difference

DEADLINE = 5.0  # seconds until two brokers must agree
FORGOTTEN = {"x-expires": 60_000}  # a run that is killed leaves nothing for longer than this
QUIET = 0.06  # seconds without news after that: twice the longest wait in a queue


def server_version(connection: AbstractConnection) -> str:
    """What the server calls itself, like `3.10.8`."""
    transport = connection.transport
    assert transport is not None
    version = transport.connection.server_properties["version"]
    return version.decode() if isinstance(version, bytes) else str(version)


async def compare(connection: AbstractConnection, world: World, expected: Sightings) -> str:
    """Run the case; empty if RabbitMQ did what was expected, else the differences."""
    topology, seen = world.topology(), Sightings()
    async with standing(connection, topology) as channel:
        for queue, fates in world.consumed().items():
            await (await channel.get_queue(queue, ensure=False)).consume(
                _consumer(queue, fates, seen)
            )
        for number, letter in enumerate(world.case.letters):
            seen.routed.append(await _publish(channel, world, letter, number))
        waiting = [queue.name for queue in topology.queues if queue.name not in world.consumed()]

        async def agree() -> bool:
            return seen.deliveries == expected.deliveries and await _are_empty(channel, waiting)

        if await came_true(agree):
            await asyncio.sleep(QUIET)  # whatever should not have come would be here by now
        routed = (
            ""
            if seen.routed == expected.routed
            else f"routed {seen.routed}, not {expected.routed}\n"
        )
        return routed + difference(expected, seen)


async def came_true(condition: Callable[[], Awaitable[bool]], deadline: float = DEADLINE) -> bool:
    """Whether a condition came true before the deadline."""
    end = time.monotonic() + deadline
    while not await condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.005)
    return True


async def _publish(channel: AbstractChannel, world: World, letter: LetterPlan, number: int) -> bool:
    message = aio_pika.Message(
        str(number).encode(),
        headers=world.headers(letter),  # type: ignore[arg-type]
        expiration=None if letter.expiration is None else int(letter.expiration) / 1000,
        message_id=f"{world.prefix}-{number}",
    )
    exchange = await channel.get_exchange(world.exchange(letter.exchange), ensure=False)
    confirmation = await exchange.publish(message, world.key(letter.key), mandatory=True)
    return isinstance(confirmation, Basic.Ack)


async def _are_empty(channel: AbstractChannel, queues: list[str]) -> bool:
    for queue in queues:
        declared = await channel.declare_queue(queue, passive=True)
        if declared.declaration_result.message_count:
            return False
    return True


@asynccontextmanager
async def standing(
    connection: AbstractConnection, topology: Topology
) -> AsyncIterator[AbstractChannel]:
    """A channel on which the topology stands for as long as it is needed."""
    channel = await connection.channel()
    try:
        await declare(channel, topology)
        yield channel
    finally:
        for queue in topology.queues:
            await channel.queue_delete(queue.name)
        for exchange in topology.exchanges:
            await channel.exchange_delete(exchange.name)
        await channel.close()


async def declare(channel: AbstractChannel, topology: Topology) -> None:
    """The three tables, on the broker."""
    for exchange in topology.exchanges:
        await channel.declare_exchange(exchange.name, exchange.type.value, durable=True)
    for queue in topology.queues:
        arguments = queue.arguments | FORGOTTEN
        await channel.declare_queue(queue.name, durable=True, arguments=arguments)
    for binding in topology.bindings:
        bound = await channel.get_queue(binding.queue.name, ensure=False)
        await bound.bind(binding.exchange.name, binding.key, arguments=binding.queue.bind_arguments)


class _consumer:
    def __init__(self, queue: str, fates: tuple[Fate, ...], seen: Sightings) -> None:
        self.queue, self.fates, self.seen = queue, fates, seen

    async def __call__(self, message: AbstractIncomingMessage) -> None:
        assert message.redelivered is not None
        self.seen.add(
            self.queue,
            message.exchange or "",
            message.routing_key or "",
            message.body,
            message.headers,
            redelivered=message.redelivered,
            expiration=message.expiration,
        )
        match fate_of(self.fates, message.headers, message.redelivered):
            case Fate.ACK:
                await message.ack()
            case Fate.REJECT:
                await message.reject()
            case Fate.NACK:
                await message.nack(requeue=False)
            case Fate.REJECT_BACK:
                await message.reject(requeue=True)
            case Fate.NACK_BACK:
                await message.nack()
            case Fate.KEEP:
                pass
