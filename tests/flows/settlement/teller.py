"""A bank in the test's own process: what it was asked, by whom, and what it answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """One request: the path tells which worker it was, the key which transaction."""

    path: str
    key: str
    body: dict[str, str]


Answer = Callable[[Asked], Awaitable[int]]


async def settled(_asked: Asked) -> int:
    """A bank that always works."""
    return 200


@dataclass
class Teller:
    """An HTTP server that settles, or does not."""

    answer: Answer = settled
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    answered: list[tuple[str, int]] = field(default_factory=list)
    together: int = 0
    _open: dict[str, int] = field(default_factory=dict)
    _lines: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, worker: str = "bank") -> str:
        """The address for one worker."""
        return f"http://127.0.0.1:{self.port}/{worker}"

    def times(self, key: str) -> int:
        """How often a transaction was asked for."""
        return sum(asked.key == key for asked in self.asked)

    def paid(self) -> list[str]:
        """The transactions that were answered with a settlement, each time."""
        return [key for key, status in self.answered if status == 200]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody calls."""
        line = asyncio.ensure_future(self.serve(reader, writer))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)

    async def hang_up(self) -> None:
        """The bank closes."""
        for line in tuple(self._lines):
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests on one connection, one after the other."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._one(head.decode(), reader, writer)
        writer.close()

    async def _one(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first, *lines = head.split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        asked = Asked(first.split()[1], headers.get("idempotency-key", ""), body)
        self.asked.append(asked)
        self._open[asked.key] = self._open.get(asked.key, 0) + 1
        self.together = max(self.together, self._open[asked.key])
        try:
            status = await self.answer(asked)
        finally:
            self._open[asked.key] -= 1
        said = json.dumps({"reference": f"bank-{asked.key}"}).encode()
        length = f"content-type: application/json\r\ncontent-length: {len(said)}"
        writer.write(f"HTTP/1.1 {status} X\r\n{length}\r\n\r\n".encode() + said)
        await writer.drain()
        self.answered.append((asked.key, status))


@asynccontextmanager
async def open_teller(answer: Answer = settled) -> AsyncIterator[Teller]:
    """The bank, on a port of its own."""
    teller = Teller(answer)
    server = await asyncio.start_server(teller.accept, "127.0.0.1", 0)
    teller.port = server.sockets[0].getsockname()[1]
    try:
        yield teller
    finally:
        server.close()
        await teller.hang_up()
