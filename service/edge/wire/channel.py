"""A channel: questions and answers in order, and contents put together out of their frames."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from pamqp import commands
from pamqp.base import Frame

from service.edge.wire import frames
from service.edge.wire.errors import Lost, Refused

if TYPE_CHECKING:
    from service.edge.wire.connection import Connection


class Channel:
    """One channel of a connection. What the broker says without being asked, a kind of channel
    hears in `on_content`, `on_settled` and `on_method`; `on_end` tells it that all is over."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection, self.number = connection, number
        self.ended: Exception | None = None
        self._questions: deque[asyncio.Future[Frame]] = deque()
        self._head = b""
        self._properties = b""
        self._parts: list[bytes] = []
        self._missing = 0
        connection.channels[number] = self

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        return self.ended is None

    async def open(self) -> None:
        """Make the broker know it."""
        await self.ask(commands.Channel.Open())

    async def ask(self, method: Frame, within: float | None = None) -> Frame:
        """Send a method and return the answer; Refused or Lost where there is none."""
        if self.ended is not None:
            raise self.ended
        if self.connection.lost.done():  # it was made too late to be told
            raise self.connection.lost.result()
        answer: asyncio.Future[Frame] = self.connection.loop.create_future()
        self._questions.append(answer)
        self.connection.send(frames.write(method, self.number))
        async with asyncio.timeout(within or self.connection.target.timeout):
            return await answer

    async def close(self) -> None:
        """Say good-bye; what is not settled goes back to its queue."""
        if self.is_open and self.connection.is_open:
            await self.ask(commands.Channel.Close(200, "done", 0, 0), within=2)
        self.end(Lost("closed by us"))

    def end(self, why: Exception) -> None:
        """It is over: whoever waits is told."""
        if self.ended is not None:
            return
        self.ended = why
        self.connection.channels.pop(self.number, None)
        for question in self._questions:
            if not question.done():
                question.set_exception(why)
        self._questions.clear()
        self.on_end(why)

    def hear(self, kind: int, payload: bytes) -> None:
        """One frame for this channel."""
        if kind == frames.BODY:
            self._parts.append(payload)
            self._missing -= len(payload)
            if self._missing <= 0:
                self._complete()
        elif kind == frames.HEADER:
            self._properties = payload[12:]
            self._missing = frames.SIZE.unpack_from(payload, 4)[0]
            if not self._missing:
                self._complete()
        elif kind == frames.METHOD:
            self._hear_method(payload)

    def on_content(self, head: bytes, properties: bytes, body: bytes) -> None:
        """A delivery, or a returned letter: the method's payload, the properties, the body."""

    def on_settled(self, tag: int, *, upto: bool, taken: bool) -> None:
        """The broker took what we published, or did not: one letter, or all up to it."""

    def on_method(self, method: Frame) -> None:
        """Anything else that we did not ask for."""

    def on_end(self, why: Exception) -> None:
        """The channel is gone."""

    def _complete(self) -> None:
        parts, head = self._parts, self._head
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts, self._head = [], b""
        if head:
            self.on_content(head, self._properties, body)

    def _hear_method(self, payload: bytes) -> None:
        code = payload[:4]
        if code in (frames.DELIVER, frames.RETURN):
            self._head = payload
        elif code in (frames.ACK, frames.NACK):
            tag, bits = frames.TAG.unpack_from(payload, 4)
            self.on_settled(tag, upto=bool(bits & 1), taken=code == frames.ACK)
        else:
            self._hear_rare(frames.read(payload))

    def _hear_rare(self, method: Frame) -> None:
        if isinstance(method, commands.Channel.Close):
            self.connection.send(frames.write(commands.Channel.CloseOk(), self.number))
            self.end(Refused(method.reply_code or 0, method.reply_text or ""))
        elif method.name.endswith("Ok") and self._questions:
            question = self._questions.popleft()
            if not question.done():
                question.set_result(method)
        else:
            self.on_method(method)
