"""A foreign team: an exchange `shop`, a queue `orders` that dead-letters to us, and its consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage, AbstractQueue
from pamqp.common import FieldTable

DEAD_LETTERS = {
    "x-dead-letter-exchange": "retry-exchange",
    "x-dead-letter-routing-key": "retry-routing-key",
}


@dataclass(frozen=True)
class Seen:
    """One delivery as the team's consumer saw it."""

    at: float
    message: AbstractIncomingMessage


@dataclass
class Shop:
    """The team's side: what stands there, and what its consumer has seen."""

    channel: AbstractChannel
    exchange: AbstractExchange
    orders: AbstractQueue
    seen: list[Seen] = field(default_factory=list)

    async def publish(self, key: str, body: bytes = b"{}", **properties: Any) -> None:
        """Send an order to the exchange."""
        await self.exchange.publish(Message(body, **properties), key)

    async def consume(
        self,
        accepts: Callable[[AbstractIncomingMessage], bool],
        queue: AbstractQueue | None = None,
    ) -> None:
        """Take orders: acknowledge those that it accepts, reject the others to the dead-letter exchange."""

        async def handle(message: AbstractIncomingMessage) -> None:
            self.seen.append(Seen(asyncio.get_running_loop().time(), message))
            if accepts(message):
                await message.ack()
            else:
                await message.reject(requeue=False)

        await (queue or self.orders).consume(handle)

    async def another(self, name: str, key: str, **arguments: str | int) -> AbstractQueue:
        """A second queue at the same exchange; it dead-letters to us only if its arguments say so."""
        queue = await self.channel.declare_queue(name, durable=True, arguments={**arguments})
        await queue.bind(self.exchange, key)
        return queue

    def headers(self) -> list[dict[str, Any]]:
        """The headers of every delivery, in order."""
        return [dict(seen.message.headers) for seen in self.seen]


def reject_all(_message: AbstractIncomingMessage) -> bool:
    """A consumer for which nothing works."""
    return False


def retried(message: AbstractIncomingMessage) -> bool:
    """A consumer that fails first and works the second time."""
    return "x-retry-count" in message.headers


async def open_shop(channel: AbstractChannel, kind: str = "classic") -> Shop:
    """Declare the team's topology: plain AMQP, none of our code."""
    exchange = await channel.declare_exchange("shop", ExchangeType.TOPIC, durable=True)
    arguments: FieldTable = {**DEAD_LETTERS, "x-queue-type": kind}
    orders = await channel.declare_queue("orders", durable=True, arguments=arguments)
    await orders.bind(exchange, "order.#")
    return Shop(channel, exchange, orders)
