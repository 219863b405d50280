"""The network between: passing, swallowing, slow, cut, healed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.servers.proxy import Proxy, proxied
from tests.servers.waiting import eventually

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, proxied("127.0.0.1", server.sockets[0].getsockname()[1]) as between:
        yield between


async def connect(proxy: Proxy) -> Wire:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def say(wire: Wire, word: bytes, within: float = 2.0) -> bytes:
    reader, writer = wire
    writer.write(word)
    return await asyncio.wait_for(reader.readexactly(len(word)), within)


async def test_it_passes_both_ways(proxy: Proxy) -> None:
    assert await say(await connect(proxy), b"hello") == b"hello"
    assert proxy.connections == 1


async def test_a_black_hole_swallows_until_healed(proxy: Proxy) -> None:
    wire = await connect(proxy)
    proxy.black_hole()
    with pytest.raises(TimeoutError):
        await say(wire, b"lost?", within=0.1)
    proxy.heal()
    assert await asyncio.wait_for(wire[0].readexactly(5), 2) == b"lost?"


async def test_a_reset_is_seen_at_once_and_new_connections_pass(proxy: Proxy) -> None:
    wire = await connect(proxy)
    await say(wire, b"hello")
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(wire[0].read(), 2)
    await eventually(lambda: proxy.connections == 0)
    assert await say(await connect(proxy), b"again") == b"again"


async def test_latency_is_added_each_way(proxy: Proxy) -> None:
    wire = await connect(proxy)
    proxy.delay(0.05)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await say(wire, b"slow")
    assert loop.time() - began >= 0.1


async def test_a_server_that_is_away_is_a_reset(unused_tcp_port: int) -> None:
    async with proxied("127.0.0.1", unused_tcp_port) as proxy:
        reader, _ = await connect(proxy)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 2)


async def test_waiting_returns_what_came_true() -> None:
    seen = iter([None, 0, "", "here"])
    assert await eventually(lambda: next(seen), pause=0) == "here"


async def test_waiting_ends_at_the_deadline_and_says_what_it_saw() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: the condition was \[\]"):
        await eventually(list, within=0.05)
