"""How long the lists that people open take at a million letters on PostgreSQL: `just bench lists`."""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from rich.console import Console
from rich.table import Table

from benchmarks.seeding import seed
from deploy.local.postgres import Server
from service.edge.fields import decode_table
from service.edge.rewriting import rewrite
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.web.api import audit, causes, create_api, letters, status

BOUND = 0.100  # seconds
TIMES = 9
FAR = 1_000
CAUSE = f"{3:016x}"
Asked = Mapping[str, Any]

LISTS: tuple[tuple[str, str, Asked], ...] = (
    ("all letters", "/letters", {}),
    ("parked and back", "/letters", {"state": ["parked", "back"]}),
    ("discarded (rare)", "/letters", {"state": "discarded"}),
    ("one cause", "/letters", {"cause": CAUSE}),
    ("open ones of one cause", "/letters", {"cause": CAUSE, "state": ["parked", "back"]}),
    ("one queue", "/letters", {"origin_queue": "orders.7"}),
    ("one queue, parked", "/letters", {"origin_queue": "orders.7", "state": "parked"}),
    ("one routing key", "/letters", {"routing_key": "order.kind7"}),
    ("one flow", "/letters", {"flow": "settlement"}),
    ("a message id", "/letters", {"letter": "letter-4711"}),
    ("a header", "/letters", {"header": "tenant=tenant-7"}),
    ("words that are often", "/letters", {"text": "amount 7 "}),
    ("words that are nowhere", "/letters", {"text": "nobody wrote this"}),
    (
        "parked in an hour long ago",
        "/letters",
        {"state": "parked", "until": "2020-01-01T00:00:00Z"},
    ),
    ("500 letters", "/letters", {"limit": 500}),
    ("count of the parked", "/letters/count", {"state": "parked"}),
    ("causes", "/causes", {}),
    ("causes, newest letter first", "/causes", {"sort": "last_seen", "limit": 200}),
    ("causes with open letters", "/causes", {"open": "true"}),
    ("one cause, its page", f"/causes/{CAUSE}", {}),
    ("status", "/status", {}),
    ("audit", "/audit", {}),
)


def client_of(book: Book) -> httpx2.AsyncClient:
    """The API in memory: everything but the socket."""
    routers = [
        letters.router(book, letters.Desk(decode_table, rewrite)),
        causes.router(book),
        status.router(book, {}, "bench"),
        audit.router(book),
    ]
    transport = httpx2.ASGITransport(create_api(routers, "bench"))
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost/api/v1", timeout=60)


async def took(
    client: httpx2.AsyncClient, path: str, asked: Asked, often: int = TIMES
) -> list[float]:
    """The times of several requests, the first included."""
    times = []
    for _ in range(often):
        began = time.perf_counter()
        answer = await client.get(path, params=dict(asked))
        times.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer.text
    return times


async def compared(client: httpx2.AsyncClient, one: Asked, other: Asked) -> tuple[float, float]:
    """The medians of two requests, made in turns: what else the machine does slows both alike."""
    times = [
        (await took(client, "/letters", one, 1), await took(client, "/letters", other, 1))
        for _ in range(5 * TIMES)
    ]
    return (
        statistics.median(first for (first,), _ in times),
        statistics.median(second for _, (second,) in times),
    )


async def far_page(client: httpx2.AsyncClient, asked: Asked) -> Asked:
    """Follow the cursors, page by page, to the thousandth."""
    cursor: dict[str, str] = {}
    for number in range(2, FAR + 1):
        page = (await client.get("/letters", params={**asked, **cursor})).json()
        if page["next"] is None:
            raise SystemExit(f"there is no page {number}: seed more letters")
        cursor = {"cursor": page["next"]}
    return {**asked, **cursor}


async def measure(book: Book, console: Console) -> bool:
    """Print every list's times; whether all kept the bounds."""
    table = Table("list", "first", "median", "worst", title="milliseconds")
    kept = True
    async with client_of(book) as client:
        for name, path, asked in LISTS:
            times = await took(client, path, asked)
            median = statistics.median(times)
            kept &= median < BOUND
            table.add_row(name, *(f"{1000 * each:.1f}" for each in (times[0], median, max(times))))
        console.print(table)
        for asked in ({}, {"state": ["parked", "back"]}, {"cause": CAUSE, "limit": 10}):
            first, far = await compared(client, asked, await far_page(client, asked))
            kept &= far <= 2 * first
            said = f"page {FAR} of {asked or 'all'}: {1000 * far:.1f} ms, page 1: {1000 * first:.1f} ms"
            console.print(f"{said} ({far / first:.2f} ×)", soft_wrap=True)
    return kept


async def main() -> int:
    """Seed a private server, unless one is named, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    parser.add_argument("--url", help="a ledger that is seeded already: postgresql+asyncpg://…")
    asked, console = parser.parse_args(), Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="dlo-bench-") as folder:
        os.chmod(folder, 0o755)  # PostgreSQL may run as another user
        server = None if asked.url else Server(Path(folder) / "postgres")
        if server is not None:
            server.start()
        try:
            url = asked.url or _new(server)
            book = Book(url)
            if server is not None:
                await _seed(book, url, asked.letters, console)
            kept = await measure(book, console)
            await book.close()
        finally:
            if server is not None:
                server.stop()
    console.print("within the bounds" if kept else "NOT within the bounds")
    return 0 if kept else 1


def _new(server: Server | None) -> str:
    assert server is not None
    return server.create_database("bench")


async def _seed(book: Book, url: str, count: int, console: Console) -> None:
    began = time.monotonic()
    await upgrade(url)
    await seed(book, count, sqlite=False)
    console.print(f"{count:,} letters seeded in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
