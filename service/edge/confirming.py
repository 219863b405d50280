"""A channel that publishes and waits for the broker's word, without giving letters an id of its own.

aiormq matches returned messages by `message_id`: it invents one where the sender set none, and two
letters in flight with one id swap their fates. Here the match is by the mark every send carries.
Frames of all sends that were ready together leave in one write.
"""

from __future__ import annotations

import asyncio

import aiormq
from aiormq.abc import ChannelFrame, ConfirmationFrameType
from aiormq.channel import Channel
from aiormq.exceptions import DeliveryError
from pamqp import commands as spec
from pamqp import frame as frames
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from service.core.marks import LETTER
from service.edge.fields import find
from service.edge.tolerance import Headers


class Returned(Exception):
    """No queue takes a message at this address."""


class ConfirmingChannel(Channel):
    """Publisher confirms and mandatory returns, matched by the letter's own mark."""

    @classmethod
    async def on(cls, connection: aiormq.abc.AbstractConnection, number: int) -> ConfirmingChannel:
        """Open this channel on a connection."""
        channel = cls(connection, number, publisher_confirms=True, frame_buffer=None)
        connection.channels[number] = channel
        await channel.open(timeout=10)
        channel._waiting = {}
        channel._ready, channel._wake = [], asyncio.Event()
        channel.create_task(channel._pump())
        return channel

    _waiting: dict[str, int]
    _ready: list[bytes]
    _wake: asyncio.Event

    def publish(
        self, publish: bytes, properties: spec.Basic.Properties, body: bytes, letter: str
    ) -> asyncio.Future[None]:
        """Hand over a message at once; the future ends with the broker's confirmation.

        Never two letters of one id at a time: the caller takes turns.
        """
        self.delivery_tag += 1
        answer: asyncio.Future[None] = self.create_future()
        self.confirmations[self.delivery_tag] = answer
        self._waiting[letter] = self.delivery_tag
        header = ContentHeader(body_size=len(body), properties=properties)
        self._ready += [publish, frames.marshal(header, self.number), *self._body_frames(body)]
        self._wake.set()
        return answer

    def publish_frame(self, exchange: str, routing_key: str) -> bytes:
        """The first frame of a mandatory publish to this address; the same for every letter."""
        method = spec.Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=True)
        return frames.marshal(method, self.number)

    @property
    def room(self) -> int:
        """Bytes that a header frame holds."""
        return int(self.connection.connection_tune.frame_max) - 8

    async def _pump(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            payload, self._ready = b"".join(self._ready), []
            await self.write_queue.put(ChannelFrame(payload=payload, should_close=False))

    def _body_frames(self, body: bytes) -> list[bytes]:
        size = self.room
        return [
            frames.marshal(ContentBody(body[at : at + size]), self.number)
            for at in range(0, len(body), size)
        ]

    async def _on_return_frame(self, frame: spec.Basic.Return) -> None:
        header = await self._get_frame()
        assert isinstance(header, ContentHeader)  # AMQP: a content header follows every return
        await self._read_content(frame, header)
        table = header.properties.headers
        letter = find(table.raw, LETTER) if isinstance(table, Headers) else None
        tag = self._waiting.get(letter) if isinstance(letter, str) else None
        if tag is not None and (answer := self.confirmations.get(tag)) and not answer.done():
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

    def forget(self, letter: str) -> None:
        """This letter's turn is over."""
        self._waiting.pop(letter, None)
