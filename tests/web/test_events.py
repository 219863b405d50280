"""Events: how things are, then what changes; a look a second only while somebody listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from structlog.testing import capture_logs

from service.ledger.book import Book
from service.ledger.figures import pulse
from service.ledger.schema import upgrade
from service.web.api import create_api
from service.web.api.events import PATH, _written, router
from service.web.health import Health
from service.web.streams import Streams
from tests.ledger.rows import NOW, file, fill, letter_row, replay_row
from tests.servers.waiting import eventually
from tests.web.conftest import client_of

FAST = 0.02


@asynccontextmanager
async def listening(streams: Streams) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """What one client is written."""
    listener = streams.seat()
    assert listener is not None
    stream = _written(streams, listener)
    assert isinstance(stream, AsyncGenerator)
    async with aclosing(stream):
        yield stream
    streams.leave(listener)


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
        async with listening(streams) as fresh:  # another, that comes now
            assert (await told(fresh, "causes"))["causes"]["changed_at"] == NOW.isoformat()
    await streams.idle()


async def test_nothing_is_looked_at_while_nobody_listens(book: Book) -> None:
    looks = 0

    async def look() -> Any:
        nonlocal looks
        looks += 1
        return await pulse(book)

    streams = Streams(look, {}, every=FAST)
    async with listening(streams) as stream:
        await told(stream, "letters")
    await streams.idle()
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
    await streams.idle()


async def test_silence_is_broken_by_a_comment_and_an_end_ends_it(book: Book) -> None:
    streams = streams_of(book, heartbeat=FAST)
    async with listening(streams) as stream:
        async with asyncio.timeout(10):
            while await anext(stream) != b": nothing new\n\n":
                pass
        streams.close()
        async with asyncio.timeout(1):
            assert [line async for line in stream][1:] == []
    await streams.idle()
    assert streams.is_full


async def test_a_ledger_that_is_away_is_told(sqlite_url: str) -> None:
    book = Book(sqlite_url)
    streams = streams_of(book)
    async with listening(streams) as stream:
        assert (await told(stream, "health"))["health"] == {"rabbitmq": True, "database": False}
    await streams.idle()
    await book.close()


async def test_no_more_listen_than_there_are_seats(sqlite_url: str) -> None:
    book = Book(sqlite_url)
    streams = streams_of(book, most=2)
    async with client_of(create_api([router(streams)], "1")) as client:
        asked = [asyncio.create_task(client.get(PATH)) for _ in range(10)]
        await eventually(lambda: sum(each.done() for each in asked) == 8, within=5)
        streams.close()
        answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [503] * 8
    await streams.idle()
    await book.close()


async def test_who_hangs_up_before_the_first_word_has_left_the_seat(sqlite_url: str) -> None:
    book = Book(sqlite_url)
    streams = streams_of(book, most=1)
    api = create_api([router(streams)], "1")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "GET",
        "path": PATH,
        "query_string": b"",
        "headers": [],
    }

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_message: object) -> None:
        raise OSError("nobody is there")

    with suppress(Exception):
        await api(scope, receive, send)
    assert not streams.is_full
    await streams.idle()
    await book.close()


async def test_a_look_that_fails_unforeseen_is_not_the_last(sqlite_url: str) -> None:
    await upgrade(sqlite_url)
    book, looks = Book(sqlite_url), 0

    async def look() -> Any:
        nonlocal looks
        looks += 1
        if looks < 4:
            raise ZeroDivisionError("nobody foresaw it")
        return await pulse(book)

    streams = Streams(look, {}, every=FAST)
    with capture_logs() as lines:
        async with listening(streams) as stream:
            assert (await told(stream, "letters"))["letters"]["parked"] == 0
        await streams.idle()
    assert [(line["action"], line["why"]) for line in lines] == [("unseen", "ZeroDivisionError")]
    await book.close()
