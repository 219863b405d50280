"""A service's HTTP endpoint with a script: a tiny server that notes what it was sent and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(frozen=True)
class Request:
    """One push, as it arrived."""

    at: float
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def retries(self) -> int:
        """Which retry the push says it is."""
        return int(self.headers["x-retry-count"])


@dataclass(frozen=True)
class Answer:
    """What the script answers: a status after a while, or a connection that is cut without one."""

    status: int = 200
    body: bytes = b""
    after: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs_up: bool = False


Script = Callable[[Request], Answer]


@dataclass
class Endpoint:
    """The server: its script, and every request it has seen."""

    script: Script = lambda _request: Answer()
    seen: list[Request] = field(default_factory=list)
    done: list[Request] = field(default_factory=list)
    _talks: set[asyncio.Task[None]] = field(default_factory=set)

    def of(self, body: bytes) -> list[Request]:
        """The pushes of one event."""
        return [request for request in self.seen if request.body == body]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; it is kept as long as the client likes."""
        talk = asyncio.create_task(self._talk(reader, writer))
        self._talks.add(talk)
        await asyncio.wait({talk})
        self._talks.discard(talk)
        writer.transport.abort()

    async def hang_up(self) -> None:
        """Cut every connection, as the end of a process does."""
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self._exchange(reader, writer):
                pass

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _read(reader)
        self.seen.append(request)
        answer = self.script(request)
        await asyncio.sleep(answer.after)
        if answer.hangs_up:
            return False
        writer.write(_written(answer))
        await writer.drain()
        self.done.append(request)
        return True


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(asyncio.get_running_loop().time(), first.split()[1], headers, body)


def _written(answer: Answer) -> bytes:
    status = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"
    headers = {**answer.headers, "content-length": str(len(answer.body))}
    lines = [status, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + answer.body


@asynccontextmanager
async def listening(endpoint: Endpoint, port: int = 0) -> AsyncIterator[str]:
    """The endpoint, for the time of a test; its address."""
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", port)
    async with server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await endpoint.hang_up()
