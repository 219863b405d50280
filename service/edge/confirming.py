"""A channel that publishes and waits for the broker's word, without giving letters an id of its own.

aiormq matches returned messages by `message_id`: it invents one where the sender set none, and two
letters in flight with one id swap their fates. Here the match is by the mark every send carries.
Frames of all sends that were ready together leave in one write.
"""

from __future__ import annotations

import asyncio
import struct

import aiormq
from aiormq.abc import ChannelFrame, ConfirmationFrameType
from aiormq.channel import Channel
from aiormq.exceptions import ChannelInvalidStateError, DeliveryError
from pamqp import commands as spec
from pamqp import frame as frames
from pamqp.header import ContentHeader

from service.core.marks import LETTER
from service.core.plan import Address
from service.edge.fields import find_text, wire_text
from service.edge.tolerance import Headers

FRAME, CONTENT = struct.Struct(">BHI"), struct.Struct(">HHQ")
HEADER, BODY, END, BASIC = 2, 3, b"\xce", 60
MOST_ADDRESSES = 4096
LARGEST_FRAME = 131_072  # where the broker sets no limit (frame_max = 0), its usual one


class Returned(Exception):
    """No queue takes a message at this address."""


class ConfirmingChannel(Channel):
    """Publisher confirms and mandatory returns, matched by the letter's own mark."""

    room: int
    """Bytes that a frame holds."""

    def __init__(self, connection: aiormq.abc.AbstractConnection, number: int) -> None:
        super().__init__(connection, number, publisher_confirms=True)
        self.room = (int(connection.connection_tune.frame_max) or LARGEST_FRAME) - 8
        self._waiting: dict[bytes, int] = {}
        self._first_frames: dict[Address, bytes] = {}
        self._ready: list[bytes] = []
        self._wake = asyncio.Event()

    @classmethod
    async def on(cls, connection: aiormq.abc.AbstractConnection, number: int) -> ConfirmingChannel:
        """Open this channel on a connection."""
        channel = cls(connection, number)
        connection.channels[number] = channel
        await channel.open(timeout=10)
        channel.create_task(channel._pump())
        channel.closing.add_done_callback(channel._on_closed)
        return channel

    def publish(
        self, to: Address, properties: bytes, body: bytes, letter: str
    ) -> asyncio.Future[None]:
        """Hand over a message at once; the future ends with the broker's confirmation.

        Never two letters of one id at a time: the caller takes turns.
        """
        answer: asyncio.Future[None] = self.loop.create_future()
        if self.is_closed:
            answer.set_exception(ChannelInvalidStateError("the channel is closed"))
            return answer
        first = self._first_frame(to)
        self.delivery_tag += 1
        self.confirmations[self.delivery_tag] = answer
        self._waiting[wire_text(letter)] = self.delivery_tag
        self._ready += [first, *self._header_frame(properties, len(body)), *self._body_frames(body)]
        self._wake.set()
        return answer

    def forget(self, letter: str) -> None:
        """This letter's turn is over."""
        self._waiting.pop(wire_text(letter), None)

    def abandon(self, why: Exception) -> None:
        """Nobody will answer any more."""
        for answer in self.confirmations.values():
            if not answer.done():
                answer.set_exception(why)

    def _on_closed(self, closing: asyncio.Future[object]) -> None:
        why = None if closing.cancelled() else closing.exception()
        self.abandon(
            why if isinstance(why, Exception) else ConnectionError("the channel is closed")
        )

    def _first_frame(self, to: Address) -> bytes:
        """The first frame of a mandatory publish: the same for every letter to this address."""
        frame = self._first_frames.get(to)
        if frame is None:
            if len(self._first_frames) > MOST_ADDRESSES:
                self._first_frames.clear()
            method = spec.Basic.Publish(
                exchange=to.exchange, routing_key=to.routing_key, mandatory=True
            )
            frame = self._first_frames[to] = frames.marshal(method, self.number)
        return frame

    async def _pump(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            payload, self._ready = b"".join(self._ready), []
            await self.write_queue.put(ChannelFrame(payload=payload, should_close=False))

    def _header_frame(self, properties: bytes, size: int) -> tuple[bytes, ...]:
        content = CONTENT.pack(BASIC, 0, size)
        frame = FRAME.pack(HEADER, self.number, len(content) + len(properties))
        return frame, content, properties, END

    def _body_frames(self, body: bytes) -> list[bytes]:
        parts: list[bytes] = []
        for at in range(0, len(body), self.room):
            part = body[at : at + self.room]
            parts += (FRAME.pack(BODY, self.number, len(part)), part, END)
        return parts

    async def _on_return_frame(self, frame: spec.Basic.Return) -> None:
        header = await self._get_frame()
        assert isinstance(header, ContentHeader)  # AMQP: a content header follows every return
        await self._read_content(frame, header)
        table = header.properties.headers
        letter = find_text(table.raw, LETTER) if isinstance(table, Headers) else None
        tag = self._waiting.get(letter) if letter is not None else None
        if tag is None:
            # It may be anybody's: whoever is in flight is in doubt, and nobody is told it arrived.
            self.abandon(ConnectionError("a return that names no letter in hand"))
        elif (answer := self.confirmations.get(tag)) and not answer.done():
            answer.set_exception(Returned())

    async def _on_confirm_frame(self, frame: ConfirmationFrameType) -> None:
        upto = frame.delivery_tag or 0
        several = getattr(frame, "multiple", False)
        tags = [tag for tag in self.confirmations if tag <= upto] if several else [upto]
        for tag in tags:
            answer = self.confirmations.pop(tag, None)
            if answer is None or answer.done():
                continue
            if isinstance(frame, spec.Basic.Ack):
                answer.set_result(None)
            else:
                answer.set_exception(DeliveryError(None, frame))
