"""Hearing that routes have changed: PostgreSQL tells, SQLite is asked."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

import aiosqlite

from service.ledger.away import LedgerAway
from service.ledger.engine import CONNECT_SECONDS, dial, is_sqlite, sqlite_file
from service.ledger.reaching import place, reaching

CHANNEL = "dlq_event_config"
# Without news the connection is tried and the table read anyway: a cut line says nothing by itself,
# and a proxy may swallow notifications.
SILENCE_SECONDS = 15


def changes(url: str, poll: timedelta) -> AsyncGenerator[None, None]:
    """Yields once when connected, then whenever there may be news; raises LedgerAway."""
    return _polled(url, poll.total_seconds()) if is_sqlite(url) else _listened(url)


async def _polled(url: str, every: float) -> AsyncGenerator[None, None]:
    """`data_version` moves when another connection commits: no table is read to learn it."""
    file = sqlite_file(url)
    with reaching(url):
        node = file.stat().st_ino
        # mode=rw: a file that is gone must not come back empty.
        async with aiosqlite.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True) as connection:
            seen = await _version(connection)
            yield
            while True:
                await asyncio.sleep(every)
                if file.stat().st_ino != node:
                    raise LedgerAway(
                        f"{place(url)} was replaced by another file; it is opened anew"
                    )
                if (version := await _version(connection)) != seen:
                    seen = version
                    yield


async def _version(connection: aiosqlite.Connection) -> object:
    async with connection.execute("PRAGMA data_version") as cursor:
        return await cursor.fetchone()


async def _listened(url: str) -> AsyncGenerator[None, None]:
    """Listening begins before the first yield, so no change falls between reading and listening."""
    news = asyncio.Event()
    with reaching(url):
        connection = await dial(url)
        try:
            connection.add_termination_listener(lambda *_: news.set())
            await connection.add_listener(CHANNEL, lambda *_: news.set())
            while True:
                news.clear()
                await connection.execute("SELECT 1", timeout=CONNECT_SECONDS)
                yield
                await _wait(news)
        finally:
            connection.terminate()


async def _wait(news: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            await news.wait()
    except TimeoutError:
        return
