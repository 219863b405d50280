"""Only what really speaks AMQP counts as a broker."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from deploy.local.handshake import Greeting, greet, greet_url

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def field(name: str, value: str) -> bytes:
    text = value.encode()
    return bytes([len(name)]) + name.encode() + b"S" + struct.pack(">I", len(text)) + text


def start_frame(*fields: bytes) -> bytes:
    table = b"".join(fields)
    payload = struct.pack(">HHBBI", 10, 10, 0, 9, len(table)) + table
    return struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce"


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        (
            start_frame(field("product", "RabbitMQ"), field("version", "4.0.5")),
            Greeting("RabbitMQ", "4.0.5"),
        ),
        (start_frame(), Greeting("", "")),
        (b"AMQP\x00\x00\x09\x01", None),  # it wants another version
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", None),
        (start_frame(field("product", "RabbitMQ"))[:20], None),
        (struct.pack(">BHI", 1, 0, 2**31), None),
        (b"", None),
    ],
)
async def test_who_answers(reply: bytes, heard: Greeting | None) -> None:
    async with answering(reply) as port:
        assert await asyncio.to_thread(greet, "127.0.0.1", port, 1.0) == heard


def test_nobody_answers() -> None:
    assert greet_url("amqp://guest:guest@127.0.0.1:1/") is None


def test_a_real_broker_answers(rabbit_url: str) -> None:
    greeting = greet_url(rabbit_url)
    assert greeting is not None
    assert greeting.product == "RabbitMQ"
    assert greeting.version[0].isdigit()
