"""Events: how things are, then what changes; a look a second only while somebody listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from service.ledger.book import Book
from service.ledger.figures import pulse
from service.web.api.events import _written
from service.web.health import Health
from service.web.streams import Streams
from tests.ledger.rows import NOW, file, fill, letter_row, replay_row

FAST = 0.02


@asynccontextmanager
async def listening(streams: Streams) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """What one client is written."""
    stream = _written(streams)
    assert isinstance(stream, AsyncGenerator)
    async with aclosing(stream):
        yield stream
    await streams.idle()


def streams_of(book: Book, **other: Any) -> Streams:
    up = {"rabbitmq": lambda: Health(True, "up")}
    return Streams(lambda: pulse(book), up, every=FAST, **other)


async def told(stream: AsyncIterator[bytes], *kinds: str) -> dict[str, Any]:
    """Read on until each of these kinds has been told."""
    found: dict[str, Any] = {}
    async with asyncio.timeout(10):
        while not found.keys() >= set(kinds):
            lines = (await anext(stream)).decode().strip().splitlines()
            if lines[0].startswith("event: "):
                found[lines[0].removeprefix("event: ")] = json.loads(
                    lines[1].removeprefix("data: ")
                )
    return found


async def test_a_listener_hears_how_things_are_and_what_changes(book: Book) -> None:
    streams = streams_of(book)
    async with listening(streams) as stream:
        first = await told(stream, "letters", "causes", "replays", "health")
        assert first["letters"]["parked"] == 0
        assert first["health"] == {"rabbitmq": True}
        await file(book, 2)
        assert (await told(stream, "letters"))["letters"] == {
            **first["letters"],
            "parked": 2,
            "newest": 2,
        }
        await fill(book, "replays", replay_row("r" * 16))
        then = await told(stream, "replays")
        assert then["replays"] == {"running": [{"id": "r" * 16, "state": "running"}]}
        assert NOW.isoformat() == (await _fresh(streams))["causes"]["changed_at"]


async def _fresh(streams: Streams) -> dict[str, Any]:
    """What another client, that comes now, is told first."""
    stream = _written(streams)
    assert isinstance(stream, AsyncGenerator)
    async with aclosing(stream):
        return await told(stream, "causes")


async def test_nothing_is_looked_at_while_nobody_listens(book: Book) -> None:
    looks = 0

    async def look() -> Any:
        nonlocal looks
        looks += 1
        return await pulse(book)

    streams = Streams(look, {}, every=FAST)
    async with listening(streams) as stream:
        await told(stream, "letters")
    before = looks
    await asyncio.sleep(FAST * 5)  # long enough for five more, if there were any
    assert looks == before


async def test_a_slow_listener_is_told_the_newest_only(book: Book) -> None:
    streams = streams_of(book)
    async with listening(streams) as stream:
        await told(stream, "letters", "causes", "replays", "health")
        for number in range(1, 6):
            await fill(book, "letters", letter_row(number))
            await asyncio.sleep(FAST * 2)  # time to notice each of them
        heard = await told(stream, "letters")
        assert heard["letters"]["parked"] in (4, 5)  # the last look may still be under way


async def test_silence_is_broken_by_a_comment_and_an_end_ends_it(book: Book) -> None:
    streams = streams_of(book, heartbeat=FAST)
    async with listening(streams) as stream:
        async with asyncio.timeout(10):
            while await anext(stream) != b": nothing new\n\n":
                pass
        streams.close()
        async with asyncio.timeout(1):
            assert [line async for line in stream][1:] == []
    assert streams.is_full


async def test_a_ledger_that_is_away_is_told(sqlite_url: str) -> None:
    book = Book(sqlite_url)
    async with listening(streams_of(book)) as stream:
        assert (await told(stream, "health"))["health"] == {"rabbitmq": True, "database": False}
    await book.close()
