"""A broker that hangs up while the post connects: letters are held, none is left behind.

A server of our own stands in for RabbitMQ: only so can the connection end exactly after its opening,
where aiormq fails with a bare Exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from pamqp import commands as spec
from pamqp import frame as frames
from pamqp.base import Frame

from service.core.marks import LETTER
from service.core.plan import Address, Send
from service.edge.letter import Letter
from service.edge.post import NotSent, RabbitPost
from service.edge.tolerance import install
from tests.servers.waiting import eventually

install()
SEND = Send(Address("", "queue"), {LETTER: "id"})
PROPERTIES = {"capabilities": {"publisher_confirms": True, "basic.nack": True}}


class Host:
    """As much of a broker as a publisher sees, with moods."""

    def __init__(self) -> None:
        self.hangs_up = False
        self.is_silent = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, and confirm what comes, as far as the mood allows."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._greet(reader, writer)
            while not self.hangs_up:
                await self._answer(reader, writer)
        writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        _say(writer, spec.Connection.Start(0, 9, PROPERTIES, "PLAIN", "en_US"))  # type: ignore[arg-type]
        await _hear(reader)
        _say(writer, spec.Connection.Tune(2047, 131_072, 60))
        await _hear(reader)
        await _hear(reader)
        _say(writer, spec.Connection.OpenOk())
        self.tag = 0

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match await _hear(reader):
            case spec.Channel.Open():
                _say(writer, spec.Channel.OpenOk(), 1)
            case spec.Confirm.Select():
                _say(writer, spec.Confirm.SelectOk(), 1)
            case spec.Basic.Publish() if not (self.is_silent or self.hangs_up):
                self.tag += 1
                _say(writer, spec.Basic.Ack(self.tag, False), 1)


@asynccontextmanager
async def hosted() -> AsyncIterator[tuple[Host, RabbitPost]]:
    """A host, and an open post to it."""
    host = Host()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    post = RabbitPost(f"amqp://guest:guest@127.0.0.1:{port}/", timeout=1, ours=frozenset())
    await post.open()
    try:
        yield host, post
    finally:
        await post.close()
        server.close()


async def test_hang_ups_in_the_middle_of_connecting_are_no_confirmation_and_pass() -> None:
    async with hosted() as (host, post):
        host.hangs_up = True
        await _refused(post)
        await _refused(post)
        host.hangs_up = False

        async def sent() -> bool:
            with suppress(NotSent):
                await post.send(Letter(b"x", {}, {}), SEND)
                return True
            return False

        await eventually(sent, within=10)
        assert post.trouble is None


async def test_a_silent_broker_is_given_up_also_after_hang_ups() -> None:
    async with hosted() as (host, post):
        host.hangs_up = True
        await _refused(post)
        await _refused(post)
        host.hangs_up, host.is_silent = False, True
        async with asyncio.timeout(15):
            await _refused(post)
        assert post.trouble is not None


async def _refused(post: RabbitPost) -> None:
    with pytest.raises(NotSent):
        await post.send(Letter(b"x", {}, {}), SEND)


def _say(writer: asyncio.StreamWriter, method: Frame, channel: int = 0) -> None:
    writer.write(frames.marshal(method, channel))


async def _hear(reader: asyncio.StreamReader) -> object:
    head = await reader.readexactly(7)
    size = int.from_bytes(head[3:], "big")
    return frames.unmarshal(head + await reader.readexactly(size + 1))[2]
