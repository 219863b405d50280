"""A broker with nothing of ours or of an earlier test on it, over AMQP alone: any RabbitMQ will do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage

from tests.servers.waiting import eventually

MOST_TIERS = 6
DOMAINS = ("user", "auth", "alarm", "document", "workflow", "notification", "audit")
OURS = (
    "dlo.receipts",
    "retry-queue",
    "dlq-queue",
    "test-pass-queue",
    "test-fail-queue",
    "test-fail-pass-queue",
)
SETTLEMENT = (
    *("transaction.created.worker", "settlement.requested.worker", "dlq.settlement.monitor"),
    *("dlq.transaction.created", "dlq.settlement.requested"),
)
TIERS = tuple(
    f"{name}{n}" for n in range(1, MOST_TIERS) for name in ("retry-queue-", "queue.delay.")
)
EXCHANGES = (
    *("retry-exchange", "route-delay", "dlq-exchange", "test-retry-exchange", "shop"),
    *(f"retry-exchange-{n}" for n in range(1, MOST_TIERS)),
    *("freeflow.events", "freeflow.events.retry", "freeflow.events.dlx"),
    *("transaction.created", "settlement.requested"),
    *("dlq.transaction.created", "dlq.settlement.requested"),
)
FREEFLOW = (
    "freeflow.events.dlq",
    *(f"freeflow.{domain}" for domain in DOMAINS),
    *(f"freeflow.{domain}.retry.{tier}" for domain in DOMAINS for tier in ("30s", "5m", "30m")),
)
FOREIGN = ("orders", "billing", "audit")


async def clean(url: str, *more: str, exchanges: Sequence[str] = ()) -> None:
    """Delete what the service declares and what tests declare for foreign teams."""
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        for name in (*OURS, *SETTLEMENT, *TIERS, *FREEFLOW, *FOREIGN, *more):
            await channel.queue_delete(name)
        for name in (*EXCHANGES, *exchanges):
            await channel.exchange_delete(name)


@asynccontextmanager
async def channel_to(url: str, prefetch: int = 100) -> AsyncIterator[AbstractChannel]:
    """A channel on a connection of its own, with publisher confirms."""
    connection: AbstractConnection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel(on_return_raises=True)
        await channel.set_qos(prefetch_count=prefetch)
        yield channel


async def depth(channel: AbstractChannel, queue: str) -> int:
    """How many letters are ready in a queue."""
    declared = await channel.declare_queue(queue, passive=True)
    return declared.declaration_result.message_count or 0


async def buried(
    channel: AbstractChannel, count: int = 1, within: float = 5
) -> list[AbstractIncomingMessage]:
    """Wait until so many letters are in dlq-queue, and take them out; more would be an error."""
    await eventually(lambda: _has(channel, "dlq-queue", count), within)
    taken = await drain(channel, "dlq-queue")
    assert len(taken) == count
    return taken


async def _has(channel: AbstractChannel, queue: str, count: int) -> bool:
    return await depth(channel, queue) >= count


async def drain(channel: AbstractChannel, queue: str) -> list[AbstractIncomingMessage]:
    """Take every letter that is ready out of a queue."""
    declared = await channel.get_queue(queue, ensure=False)
    taken = []
    while (letter := await declared.get(fail=False)) is not None:
        await letter.ack()
        taken.append(letter)
    return taken
