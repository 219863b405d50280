"""A tap: hears copies of the letters that pass some exchanges, and takes nothing from anybody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aiormq.exceptions import ChannelNotFoundEntity
from yarl import URL

from service.core.plan import Address


@dataclass(frozen=True, slots=True)
class Heard:
    """A letter that passed: the address it was sent to, and its headers."""

    to: Address
    headers: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Depth:
    """How many letters are ready in a queue, and how many consumers it has."""

    letters: int
    consumers: int


class Missing(LookupError):
    """What should stand on the broker does not; says its name."""


class Tap:
    """One channel of one connection; what it hears waits here until somebody asks."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._heard: asyncio.Queue[Heard | Exception] = asyncio.Queue()

    async def listen(self, wanted: Callable[[Heard], bool], *addresses: Address) -> None:
        """Hear the letters we want of those sent to these addresses; the queue for it dies with us."""

        async def hear(message: AbstractIncomingMessage) -> None:
            to = Address(message.exchange or "", message.routing_key or "")
            heard = Heard(to, message.headers)
            if wanted(heard):
                self._heard.put_nowait(heard)

        ear = await self._channel.declare_queue(exclusive=True, auto_delete=True)
        for address in addresses:
            await ear.bind(address.exchange, address.routing_key)
        await ear.consume(hear, no_ack=True)

    async def next(self, within: float) -> Heard | None:
        """The next such letter, or None when none came in so many seconds."""
        try:
            async with asyncio.timeout(within):
                heard = await self._heard.get()
        except TimeoutError:
            return None
        if isinstance(heard, Exception):
            raise heard
        return heard

    async def depth(self, queue: str) -> Depth:
        """Look at a queue without touching it."""
        try:
            declared = await self._channel.declare_queue(queue, passive=True)
        except ChannelNotFoundEntity:
            raise Missing(queue) from None
        found = declared.declaration_result
        return Depth(found.message_count or 0, found.consumer_count or 0)

    async def find(self, exchange: str) -> None:
        """Make sure that an exchange stands."""
        try:
            await self._channel.get_exchange(exchange, ensure=True)
        except ChannelNotFoundEntity:
            raise Missing(exchange) from None

    def end(self, _connection: object, error: BaseException | None) -> None:
        """The connection is gone, and with it whatever would have been heard."""
        lost = error if isinstance(error, Exception) else ConnectionError("the connection is gone")
        self._heard.put_nowait(lost)


@asynccontextmanager
async def tap_on(url: str, *, within: float) -> AsyncIterator[Tap]:
    """A tap on a broker, on a connection of its own."""
    named = str(URL(url).update_query(name="dead-letter-office tap"))
    connection = await aio_pika.connect(named, timeout=within)
    async with connection:
        tap = Tap(await connection.channel())
        connection.close_callbacks.add(tap.end)
        yield tap
