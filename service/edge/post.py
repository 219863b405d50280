"""The post: the one place that publishes. A letter is confirmed and routed, or an error says why not."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import aiormq
import structlog
from aiormq.exceptions import (
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    DeliveryError,
)

from service.core.marks import LETTER
from service.core.plan import Address, Note, Send, SentBack
from service.edge.address import is_blamed, shown
from service.edge.confirming import ConfirmingChannel, Returned
from service.edge.declare import permission
from service.edge.letter import Letter, properties_of

OWN, FOREIGN = 1, 2  # channel numbers: a missing foreign exchange closes its channel, not ours


class NotSent(Exception):
    """The broker did not say that it has the letter: it may or may not."""


class NotTaken(NotSent):
    """The broker said no: a queue refuses it for now."""


class Unsendable(NotSent):
    """No broker was asked: AMQP has no way to write this letter, or its address."""


class Unroutable(Exception):
    """The broker has no queue, or no exchange, for this address."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Nothing goes out, since when (by the loop's clock) and why."""

    since: float
    says: str


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
        self._turns: dict[str, asyncio.Future[None]] = {}
        self._due: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._tasks: set[asyncio.Future[None]] = set()
        self._log = structlog.get_logger("dlo.post")
        self._is_lost = False
        self.trouble: Trouble | None = None

    @property
    def is_open(self) -> bool:
        """Whether the publishing connection stands."""
        return self._connection is not None and self._connection.is_opened

    async def open(self) -> None:
        """Connect now instead of at the first letter, and again whenever the connection is lost."""
        await self._channel(OWN)
        self.trouble = None
        self._background(self._stay_open())

    async def close(self) -> None:
        """Hang up."""
        for task in tuple(self._tasks):
            task.cancel()
        self._hang_up(ConnectionError("closed by us"))
        for task in tuple(self._tasks):
            with suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(task, timeout=2)

    async def send(self, letter: Letter, send: Send) -> None:
        """Publish persistent and mandatory, and wait for the confirmation."""
        mark, number = str(send.marks[LETTER]), self._number(send)
        try:
            channel = await self._open_channel(number)
            while (before := self._turns.get(mark)) is not None:
                await asyncio.wait({before})  # returns are told apart by the id: one at a time
                channel = await self._open_channel(number)
            await self._publish(channel, letter, send, mark)
        except Exception as fault:  # noqa: BLE001  # aiormq raises even a bare Exception
            failure = _failure(fault, send.to)
            if not _is_a_result(failure, send):
                self._complain(failure)
            raise failure from None
        self.trouble = None

    async def _publish(
        self, channel: ConfirmingChannel, letter: Letter, send: Send, mark: str
    ) -> None:
        try:
            properties = properties_of(letter, send.marks, channel.room)
            answer = channel.publish(send.to, properties, letter.body, mark)
        except Exception as fault:  # noqa: BLE001  # whatever pamqp or our own fields say
            raise Unsendable(f"it cannot be written as AMQP: {fault}") from None
        self._turns[mark] = answer
        self._due.append((self._now() + self._timeout, answer))
        try:
            await answer
        finally:
            del self._turns[mark]
            channel.forget(mark)

    def _number(self, send: Send) -> int:
        """Who may not write a note must not lose the channel of the letters over it."""
        return FOREIGN if isinstance(send, Note) or send.to.exchange not in self._ours else OWN

    async def _stay_open(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._timeout / 4))
            await self._reopen()
            await self._end_silence()

    async def _reopen(self) -> None:
        """Tried at each tick, told when it changes."""
        if not self.is_open:
            if not self._is_lost:
                says = "the publishing connection is lost; opening it again"
                self._log.warning(says, action="post_lost")
            self._is_lost = True
            with suppress(NotSent):  # the next tick tries again
                await self._open_channel(OWN)
        if self._is_lost and self.is_open:
            self._is_lost = False
            self._log.info("publishing again", action="post_open")

    async def _end_silence(self) -> None:
        """Give up a connection that stays silent. A blocked broker is alive and will answer: sending
        again would only make copies. When it is free again it has the whole time to do so."""
        while self._due and self._due[0][1].done():
            self._due.popleft()
        if await self._is_blocked():
            later = self._now() + self._timeout
            self._due = deque((later, answer) for _, answer in self._due)
        elif self._due and self._due[0][0] < self._now():
            self._hang_up(TimeoutError(f"no confirmation within {self._timeout:g} s"))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

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

    def _hang_up(self, why: Exception) -> None:
        """Drop the connection; what is on its way is in doubt, and good-byes are said behind our back."""
        connection, self._connection = self._connection, None
        for channel in self._channels.values():
            channel.abandon(why)
        self._channels.clear()
        self._due.clear()
        if connection is not None:
            self._background(connection.close(why))

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _complain(self, failure: Exception) -> None:
        """Remember since when nothing goes out; one line for a trouble, not one for each letter."""
        if self.trouble is None or self.trouble.says != str(failure):
            since = self._now() if self.trouble is None else self.trouble.since
            self.trouble = Trouble(since, str(failure))
            self._log.warning("not sent; trying again", action="not_sent", why=str(failure))

    async def _open_channel(self, number: int) -> ConfirmingChannel:
        channel = self._channels.get(number)
        if channel is not None and not channel.is_closed:
            return channel
        try:
            return await self._channel(number)
        except asyncio.CancelledError:  # also aiormq's word for a connection lost while opening
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise NotSent("the connection was lost while opening") from None
        except Exception as fault:  # noqa: BLE001  # aiormq raises even a bare Exception
            raise NotSent(f"{type(fault).__name__}: {fault}") from None

    async def _channel(self, number: int) -> ConfirmingChannel:
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


def _failure(fault: Exception, to: Address) -> NotSent | NotTaken | Unroutable:
    match fault:
        case NotSent():
            return fault
        case Returned():
            return Unroutable(f"no queue takes {shown(to)}")
        case DeliveryError():
            return NotTaken(f"the queue refuses {shown(to)}: it is full, or cannot answer for it")
        case ChannelNotFoundEntity() | ChannelAccessRefused() if is_blamed(fault, to):
            return Unroutable(permission(str(fault)))
        case ChannelAccessRefused():
            return NotSent(permission(str(fault)))
        case _:
            return NotSent(f"{type(fault).__name__}: {fault}")


def _is_a_result(failure: Exception, send: Send) -> bool:
    """Whether it says something about this letter or note alone, and nothing is held because of it."""
    refused = isinstance(failure, Unroutable | NotTaken | Unsendable)
    return isinstance(send, Note) or (isinstance(send, SentBack) and refused)
