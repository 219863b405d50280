"""A TCP proxy before a server: it passes, swallows, delays or cuts what goes through."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CHUNK = 65_536


class _Link:
    """One connection: its two ends, and whether data passes."""

    def __init__(self, ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter]) -> None:
        self.ends = ends
        self.open = asyncio.Event()
        self.open.set()
        self.is_cut = False


class Proxy:
    """One listening port in front of one server; every fault holds until `heal`."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open = asyncio.Event()
        self._open.set()
        self._latency = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._links: list[_Link] = []
        self.port = 0

    @property
    def connections(self) -> int:
        """How many connections go through it now."""
        return len(self._writers) // 2

    def black_hole(self) -> None:
        """Nothing arrives any more, in neither direction, and nobody is told."""
        self._open.clear()

    def black_hole_for(self, number: int) -> None:
        """The same for one connection alone: the first that came through is 0."""
        self._links[number].open.clear()

    def heal(self) -> None:
        """Everything passes again at once, also what was held back."""
        self._latency = 0.0
        self._open.set()
        for link in self._links:
            link.open.set()

    def delay(self, seconds: float) -> None:
        """Every piece of data takes so much longer, each way."""
        self._latency = seconds

    def reset(self) -> None:
        """Cut every connection with a TCP reset; new ones are accepted."""
        for writer in tuple(self._writers):
            _reset(writer)

    def reset_only(self, number: int) -> None:
        """The same for one connection alone: the first that came through is 0."""
        for writer in self._links[number].ends:
            _reset(writer)

    def cut_in_mid_frame(self) -> None:
        """Cut every connection at its next piece of data, when a part of it has passed."""
        for link in self._links:
            link.is_cut = True

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a client with the server."""
        try:
            upstream, server = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(writer)
            return
        self._writers |= {writer, server}
        self._links.append(link := _Link((writer, server)))
        ways = [self._spawn(reader, server, link), self._spawn(upstream, writer, link)]
        await asyncio.wait(ways)
        for end in (writer, server):
            self._writers.discard(end)
            end.close()

    def close(self) -> None:
        """Drop everything."""
        self.reset()
        for task in tuple(self._tasks):
            task.cancel()

    def _spawn(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link
    ) -> asyncio.Task[None]:
        task = asyncio.create_task(self._carry(reader, writer, link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await asyncio.sleep(self._latency)
                await self._open.wait()
                await link.open.wait()
                writer.write(data[: len(data) // 2 + 1] if link.is_cut else data)
                await writer.drain()
                if link.is_cut:
                    for end in link.ends:
                        _reset(end)
            writer.write_eof()


@asynccontextmanager
async def proxied(host: str, port: int) -> AsyncIterator[Proxy]:
    """A proxy on a free loopback port, gone afterwards with all its connections."""
    proxy = Proxy(host, port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    # With a linger time of zero, closing sends RST instead of FIN.
    raw: socket.socket | None = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
