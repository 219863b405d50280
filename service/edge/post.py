"""The post: the one place that publishes. A letter is confirmed and routed, or an error says why not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Protocol

import aiormq
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelNotFoundEntity
from pamqp import commands as spec

from service.core.marks import LETTER
from service.core.plan import Address, Send
from service.edge.confirming import ConfirmingChannel, Returned
from service.edge.letter import Letter, dress

PERSISTENT = 2
OWN, FOREIGN = 1, 2  # channel numbers: a missing foreign exchange closes its channel, not ours


class NotSent(Exception):
    """The broker did not say that it has the letter: it may or may not."""


class Unroutable(Exception):
    """The broker has no queue, or no exchange, for this address."""


class Post(Protocol):
    """Whatever can send a letter for good."""

    async def send(self, letter: Letter, send: Send) -> None:
        """Return when the broker has it; raise Unroutable or NotSent otherwise."""


class RabbitPost:
    """A connection of its own for publishing: under an alarm the broker stops reading it, and would
    stop reading our acknowledgements too if they shared it."""

    def __init__(self, url: str, *, timeout: float, ours: frozenset[str]) -> None:
        self._url = url
        self._timeout = timeout
        self._ours = ours | {""}
        self._connection: aiormq.Connection | None = None
        self._channels: dict[int, ConfirmingChannel] = {}
        self._opening = asyncio.Lock()
        self._turns: dict[str, asyncio.Lock] = {}
        self._farewells: set[asyncio.Future[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether the publishing connection stands."""
        return self._connection is not None and self._connection.is_opened

    async def open(self) -> None:
        """Connect now instead of at the first letter."""
        await self._channel(OWN)

    async def close(self) -> None:
        """Hang up."""
        self._hang_up()
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=2)

    async def send(self, letter: Letter, send: Send) -> None:
        """Publish persistent and mandatory, and wait for the confirmation."""
        mark = str(send.marks[LETTER])
        async with self._turn(mark):
            try:
                channel = await self._channel(OWN if send.to.exchange in self._ours else FOREIGN)
                await self._publish(channel, letter, send, mark)
            except Returned:
                raise Unroutable(f"no queue takes {_shown(send.to)}") from None
            except (ChannelNotFoundEntity, ChannelAccessRefused) as refusal:
                raise _blamed(refusal, send.to) from None
            except (AMQPError, RuntimeError, OSError, TimeoutError) as fault:
                raise NotSent(f"{type(fault).__name__}: {fault}") from None

    async def _publish(
        self, channel: ConfirmingChannel, letter: Letter, send: Send, mark: str
    ) -> None:
        frame = _publish_frame(channel, send.to)
        properties = _properties(letter, send, channel.room)
        answer = channel.publish(frame, properties, letter.body, mark)
        try:
            await self._confirmed(answer)
        finally:
            channel.forget(mark)

    async def _confirmed(self, answer: asyncio.Future[None]) -> None:
        """Wait for the broker. A blocked broker is alive and will answer: sending again would make
        copies. One that is silent is given up with its connection."""
        while True:
            done, _ = await asyncio.wait({answer}, timeout=self._timeout)
            if done:
                return answer.result()
            if not await self._is_blocked():
                self._hang_up()
                raise TimeoutError(f"no confirmation within {self._timeout:g} s")

    async def _is_blocked(self) -> bool:
        """Whether the broker told us that it takes no messages for now (memory or disk alarm)."""
        if self._connection is None or not self._connection.is_opened:
            return False
        try:
            async with asyncio.timeout(0.01):
                await self._connection.ready()
        except TimeoutError:
            return True
        return False

    def _hang_up(self) -> None:
        """Drop a silent connection; saying good-bye to it may take long and is nobody's business."""
        connection, self._connection = self._connection, None
        self._channels.clear()
        if connection is not None:
            farewell = asyncio.ensure_future(connection.close(TimeoutError("silent")))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    @asynccontextmanager
    async def _turn(self, mark: str) -> AsyncIterator[None]:
        """One letter of an id at a time: returns are told apart by it."""
        lock = self._turns.setdefault(mark, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._turns.pop(mark, None)

    async def _channel(self, number: int) -> ConfirmingChannel:
        channel = self._channels.get(number)
        if channel is not None and not channel.is_closed:
            return channel
        async with self._opening, asyncio.timeout(self._timeout):
            channel = self._channels.get(number)
            if channel is None or channel.is_closed:
                connection = await self._connected()
                channel = self._channels[number] = await ConfirmingChannel.on(connection, number)
            return channel

    async def _connected(self) -> aiormq.Connection:
        if self._connection is None or not self._connection.is_opened:
            self._channels.clear()
            connection = aiormq.Connection(self._url)
            await connection.connect()
            self._connection = connection
        return self._connection


@lru_cache(maxsize=4096)
def _publish_frame(channel: ConfirmingChannel, to: Address) -> bytes:
    return channel.publish_frame(to.exchange, to.routing_key)


def _properties(letter: Letter, send: Send, room: int) -> spec.Basic.Properties:
    kept = {
        ("message_type" if name == "type" else name): value
        for name, value in letter.properties.items()
    }
    properties = spec.Basic.Properties(delivery_mode=PERSISTENT, **kept)  # type: ignore[arg-type]  # as they came
    small = len(properties.marshal()) + 16
    properties.headers = dress(letter.headers, send.marks, room - small)  # type: ignore[assignment]  # ready bytes
    return properties


def _blamed(refusal: AMQPError, to: Address) -> Exception:
    """The broker closed the channel over one exchange: that letter's fault, or a neighbour's."""
    if to.exchange and f"'{to.exchange}'" in str(refusal):
        return Unroutable(str(refusal))
    return NotSent(f"the channel was closed: {refusal}")


def _shown(to: Address) -> str:
    return (
        f"exchange {to.exchange!r} key {to.routing_key!r}"
        if to.exchange
        else f"queue {to.routing_key!r}"
    )
