"""AMQP by hand: sends what a client library would refuse to send, and takes headers as bytes."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pamqp import commands, constants, frame
from pamqp.base import Frame
from pamqp.common import FieldTable
from pamqp.header import ProtocolHeader
from yarl import URL

CHANNEL = 1
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
END = bytes((constants.FRAME_END,))
TUNE_FRAME = 131_072
# Property → its flag, in the order in which the values follow.
FLAGS = {
    "content_type": 15,
    "content_encoding": 14,
    "headers": 13,
    "delivery_mode": 12,
    "priority": 11,
    "correlation_id": 10,
    "reply_to": 9,
    "expiration": 8,
    "message_id": 7,
    "timestamp": 6,
    "type": 5,
    "user_id": 4,
    "app_id": 3,
}


class Closed(Exception):
    """The broker closed the channel or the connection; says why."""


@dataclass(frozen=True)
class Taken:
    """A letter as bytes: its address, its property bytes (flags included), its body."""

    tag: int
    exchange: str
    routing_key: str
    properties: bytes
    body: bytes


class Wire:
    """One connection with one confirming channel; one question at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._sent = 0
        self._unconfirmed: set[int] = set()

    async def publish(
        self, exchange: str, key: str, letters: Iterable[tuple[bytes, bytes]]
    ) -> None:
        """Send letters (property bytes, body), and wait until the broker has confirmed them all."""
        method = frame.marshal(commands.Basic.Publish(exchange=exchange, routing_key=key), CHANNEL)
        for properties, body in letters:
            head = struct.pack(">HHQ", 60, 0, len(body)) + properties
            self._writer.write(method + _framed(HEADER, head) + _bodies(body))
            self._sent += 1
            self._unconfirmed.add(self._sent)
            await self._writer.drain()
        while self._unconfirmed:
            self._confirm(await self._method())

    async def get(self, queue: str) -> Taken | None:
        """The letter at the head of a queue, unsettled."""
        answer = await self._ask(commands.Basic.Get(queue=queue))
        if not isinstance(answer, commands.Basic.GetOk):
            return None
        head = (await self._frame())[1]
        size = struct.unpack_from(">Q", head, 4)[0]
        body = b""
        while len(body) < size:
            body += (await self._frame())[1]
        tag, exchange, key = answer.delivery_tag, answer.exchange, answer.routing_key
        return Taken(tag or 0, exchange or "", key or "", head[12:], body)

    async def take(self, queue: str) -> list[Taken]:
        """Every letter that is ready in a queue, acknowledged."""
        taken = []
        while (letter := await self.get(queue)) is not None:
            self.ack(letter)
            taken.append(letter)
        return taken

    def ack(self, letter: Taken) -> None:
        """Accept it."""
        self._tell(commands.Basic.Ack(letter.tag))

    def reject(self, letter: Taken) -> None:
        """Refuse it: the queue's dead-letter exchange takes it."""
        self._tell(commands.Basic.Reject(letter.tag, requeue=False))

    async def greet(self, url: URL) -> None:
        """The handshake, and a channel with confirms."""
        self._writer.write(ProtocolHeader().marshal())
        await self._method()
        secret = f"\0{url.user or 'guest'}\0{url.password or 'guest'}"
        client: FieldTable = {"product": "a stranger", "capabilities": {"publisher_confirms": True}}
        start = commands.Connection.StartOk(client, "PLAIN", secret, "en_US")
        await self._ask(start, channel=0)
        self._tell(commands.Connection.TuneOk(8, TUNE_FRAME, 0), channel=0)
        vhost = url.path.removeprefix("/").replace("%2F", "/") or "/"
        await self._ask(commands.Connection.Open(vhost), channel=0)
        await self._ask(commands.Channel.Open())
        await self._ask(commands.Confirm.Select())

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    def _confirm(self, method: Frame) -> None:
        if isinstance(method, commands.Basic.Nack):
            raise Closed("the broker did not take the letter")
        assert isinstance(method, commands.Basic.Ack)
        assert method.delivery_tag is not None
        upto = method.delivery_tag
        self._unconfirmed -= (
            {tag for tag in self._unconfirmed if tag <= upto} if method.multiple else {upto}
        )

    async def _ask(self, method: Frame, channel: int = CHANNEL) -> Frame:
        self._tell(method, channel)
        return await self._method()

    def _tell(self, method: Frame, channel: int = CHANNEL) -> None:
        self._writer.write(frame.marshal(method, channel))

    async def _method(self) -> Frame:
        kind, payload = await self._frame()
        assert kind == METHOD
        whole = struct.pack(">BHI", METHOD, 0, len(payload)) + payload + END
        method = frame.unmarshal(whole)[2]
        assert isinstance(method, Frame)
        if isinstance(method, commands.Channel.Close | commands.Connection.Close):
            raise Closed(method.reply_text)
        return method

    async def _frame(self) -> tuple[int, bytes]:
        try:
            kind, _channel, size = struct.unpack(">BHI", await self._reader.readexactly(7))
            payload = await self._reader.readexactly(size)
            await self._reader.readexactly(1)
        except (asyncio.IncompleteReadError, OSError) as lost:
            raise Closed("the connection is gone") from lost
        return (kind, payload) if kind != HEARTBEAT else await self._frame()


@asynccontextmanager
async def wire_to(url: str) -> AsyncIterator[Wire]:
    """A hand-made connection to a broker."""
    place = URL(url)
    reader, writer = await asyncio.open_connection(place.host, place.port or 5672)
    wire = Wire(reader, writer)
    try:
        await wire.greet(place)
        yield wire
    finally:
        wire.close()


def properties(**values: bytes | int) -> bytes:
    """Property bytes: short strings as bytes, numbers, and `headers` as the fields of the table."""
    assert values.keys() <= FLAGS.keys()
    flags = sum(1 << FLAGS[name] for name in values)
    content = [_encoded(name, values[name]) for name in FLAGS if name in values]
    return struct.pack(">H", flags) + b"".join(content)


def field(name: str | bytes, kind: bytes, content: bytes) -> bytes:
    """One field of a header table, its content already as bytes."""
    raw = name.encode() if isinstance(name, str) else name
    return bytes((len(raw),)) + raw + kind + content


def counted(content: bytes) -> bytes:
    """Content with its length before it."""
    return struct.pack(">I", len(content)) + content


def _encoded(name: str, value: bytes | int) -> bytes:
    if name == "headers":
        assert isinstance(value, bytes)
        return counted(value)
    if isinstance(value, int):
        return struct.pack(">Q" if name == "timestamp" else ">B", value)
    return bytes((len(value),)) + value


def _framed(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, CHANNEL, len(payload)) + payload + END


def _bodies(body: bytes) -> bytes:
    size = TUNE_FRAME - 8
    return b"".join(_framed(BODY, body[at : at + size]) for at in range(0, len(body), size))
