"""Posting: a link that publishes, apart from the one that consumes.

Under a memory alarm the broker stops reading a connection that publishes; if our acknowledgements
shared it, it would not read those either.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

import structlog

from service.core.plan import Address
from service.edge.post import NotSent, Trouble
from service.edge.wire.confirmed import Answer, Confirmed, Fate, Flight
from service.edge.wire.connection import Connection
from service.edge.wire.errors import Lost
from service.edge.wire.link import Link
from service.edge.wire.target import Target

LONGEST_SILENCE = 3
"""Time-outs after which a letter is given up although the broker answers others: a queue that has lost
its majority never confirms, and must not hold up the letters behind it."""


class Way(Enum):
    """The channels: a missing foreign exchange closes the foreigners' channel, not ours; and a letter
    over which the broker may have closed one goes alone, so that it takes no neighbours along."""

    OURS = "ours"
    FOREIGN = "foreign"
    ALONE = "alone"


class Posting:
    """A channel for each way, on one connection."""

    def __init__(
        self,
        target: Target,
        *,
        ours: frozenset[str],
        timeout: float,
        pause: float = 2.0,
        most: int = 1000,
        on_open: Callable[[], None] = lambda: None,
    ) -> None:
        self.link = Link(target, pause, self._furnish)
        self._ours, self._timeout = ours | {""}, timeout
        self._on_open = on_open
        self._most, self._flying, self._is_next = most, 0, False
        self._waiting: deque[tuple[Address, bytes, bytes, Answer]] = deque()
        self._channels: dict[Way, Confirmed] = {}
        self._watching: asyncio.Task[None] | None = None
        self._unblocked = 0.0
        self._log = structlog.get_logger("dlo.wire")
        self.trouble: Trouble | None = None
        """Since when nothing goes out, and why."""

    async def open(self) -> None:
        """Connect, or raise; from then on stay connected."""
        await self.link.open()
        self.trouble = None
        self._watching = asyncio.ensure_future(self._watch())

    async def close(self) -> None:
        """Hang up; what has no answer yet may or may not have arrived."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None
        await self.link.close()

    @property
    def room(self) -> int:
        """Bytes that a frame holds."""
        return self.link.connection.room if self.link.connection else 0

    @property
    def is_blocked(self) -> bool:
        """Whether the broker said that it takes nothing for now."""
        return self.link.connection is not None and bool(self.link.connection.blocked)

    @property
    def unanswered(self) -> int:
        """Letters on their way."""
        return self._flying

    def send(self, to: Address, properties: bytes, body: bytes, answer: Answer) -> None:
        """Publish a letter; the answer comes later, or at once where nothing can be sent. After a crash
        whatever is in flight comes twice: so at most `most` are, the others wait for their turn."""
        if self._flying < self._most:
            way = Way.OURS if to.exchange in self._ours else Way.FOREIGN
            self._publish(way, to, properties, body, answer)
        else:
            self._waiting.append((to, properties, body, answer))

    def send_alone(self, to: Address, properties: bytes, body: bytes, answer: Answer) -> None:
        """The same for a letter in doubt; one at a time."""
        self._publish(Way.ALONE, to, properties, body, answer)

    def _publish(
        self, way: Way, to: Address, properties: bytes, body: bytes, answer: Answer
    ) -> None:
        channel = self._channels.get(way)
        if channel is None or not channel.is_open:
            self._flying += 1
            self._answered(answer, NotSent(f"not connected: {self.link.trouble or 'opening'}"))
            return
        now = channel.connection.loop.time()
        flight = Flight(to, properties, body, lambda fate: self._answered(answer, fate), now)
        channel.publish(flight)
        self._flying += 1

    def _answered(self, answer: Answer, fate: Fate) -> None:
        self._flying -= 1
        if fate is None:
            self.trouble = None
        answer(fate)
        if self._waiting and not self._is_next:
            self._is_next = True
            try:
                while self._waiting and self._flying < self._most:
                    self.send(*self._waiting.popleft())
            finally:
                self._is_next = False

    def _complain(self, says: str) -> None:
        """Remember since when nothing goes out; one line for a trouble, not one for each letter."""
        if self.trouble is None:
            self.trouble = Trouble(self._now(), says)
            self._log.warning("not sent; trying again", action="not_sent", why=says)

    async def _furnish(self, connection: Connection) -> None:
        for way in Way:
            await self._start(way, connection)
        self._on_open()

    async def _start(self, way: Way, connection: Connection) -> None:
        channel = Confirmed(connection)
        await channel.start()
        self._channels[way] = channel

    async def _watch(self) -> None:
        """Bring back a closed channel; give up a connection on which nobody answers."""
        pause = min(0.2, self._timeout / 4)
        while True:
            await asyncio.sleep(pause)
            connection = self.link.connection
            if connection is None or not connection.is_open:
                continue
            try:
                await self._reopen(connection)
            except Exception as fault:  # noqa: BLE001  # the watch must not end
                connection.drop(Lost(f"a channel does not open: {fault!r}"))
            self._end_silence(connection)

    async def _reopen(self, connection: Connection) -> None:
        for way, channel in tuple(self._channels.items()):
            if not channel.is_open and channel.connection is connection:
                await self._start(way, connection)
                self._on_open()

    def _end_silence(self, connection: Connection) -> None:
        """A broker that is blocked, or confirms other letters, is alive and will answer: sending again
        would only make copies. When it is free again it has the whole time to do so."""
        now = self._now()
        if connection.blocked:
            self._unblocked = now
            if self.unanswered:
                self._complain(f"RabbitMQ takes no letters for now: {connection.blocked}")
            return
        for channel in self._channels.values():
            oldest = next(iter(channel.flights.values()), None)
            if oldest is None:
                continue
            is_dumb = oldest.since + LONGEST_SILENCE * self._timeout < now  # to this letter alone
            since = oldest.since if is_dumb else max(oldest.since, channel.heard)
            if max(since, self._unblocked) + self._timeout < now:
                connection.drop(Lost(f"no confirmation within {self._timeout:g} s"))
                return

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
