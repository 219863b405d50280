"""Export and import: byte for byte, whatever the bytes; faults by line; on both databases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.ledger.tables import BURIALS, LETTERS
from tests.ledger.rows import burial_row, file, fill, letter_row
from tests.web.conftest import api_of, client_of, problem

EXPORT, IMPORT = "/api/v1/letters/export", "/api/v1/letters/import"
LOCAL = {"number", "replay", "edited_from", "changed_at"}


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Book]:
    """Another ledger."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'other.db'}"
    await upgrade(url)
    book = Book(url)
    yield book
    await book.close()


async def rows(book: Book) -> list[dict[str, Any]]:
    """Every letter but what is the ledger's own."""
    async with book.reading() as connection:
        found = (await connection.execute(select(LETTERS).order_by(LETTERS.c.id))).mappings().all()
    return [
        {
            name: value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
            for name, value in row.items()
            if name not in LOCAL
        }
        for row in found
    ]


async def imported(client: httpx2.AsyncClient, lines: bytes) -> dict[str, Any]:
    answer = await client.post(IMPORT, content=lines)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_letters_travel_byte_for_byte(
    client: httpx2.AsyncClient, book: Book, other: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ledger.copies.BATCH", 3)
    monkeypatch.setattr("service.ledger.copies.HEAVY", 50)
    await file(book, 4)
    strange = bytes(range(256)) * 10
    odd = letter_row(5, body=strange, headers=strange, properties=b"", state="back", burials=2)
    await fill(book, "letters", odd, letter_row(6, state="sent", error="é\u2400\n\"' " * 700))
    await fill(book, "burials", burial_row(5, 1))
    lines = (await client.get(EXPORT)).content
    assert lines.count(b"\n") == 6
    async with client_of(api_of(other)) as there:
        whole = {"letters": 6, "known": 0, "faulty": 0, "faults": []}
        assert await imported(there, lines) == whole
        assert await imported(there, lines) == {**whole, "letters": 0, "known": 6}
        again = [json.loads(line) for line in (await there.get(EXPORT)).content.splitlines()]
        cause = (await there.get("/api/v1/causes")).json()["items"][0]
        deeds = (await there.get("/api/v1/audit")).json()["items"]
    expected = await rows(book)
    expected[5]["state"] = "parked"  # nobody there watches for it
    assert await rows(other) == expected
    assert next(line["earlier"] for line in again if line["id"] == odd["id"])[0]["burial"] == 1
    assert (cause["burials"], cause["letters"]) == (6, {"parked": 5, "back": 1})
    assert [(deed["action"], deed["how_many"]) for deed in deeds] == [("letters.import", 6)]
    async with other.reading() as connection:
        assert len((await connection.execute(select(BURIALS))).all()) == 1


async def test_an_export_takes_a_filter(client: httpx2.AsyncClient, book: Book) -> None:
    await file(book, 3)
    lines = (await client.get(EXPORT, params={"text": "order 2"})).content.splitlines()
    assert [json.loads(line)["letter"] for line in lines] == ["message-2"]
    empty = await client.get(EXPORT, params={"state": "quiet"})
    assert (empty.status_code, empty.content) == (200, b"")
    assert empty.headers["content-type"] == "application/x-ndjson"


async def test_what_is_here_stays_as_it_is(client: httpx2.AsyncClient, book: Book) -> None:
    await file(book, 2)
    lines = (await client.get(EXPORT)).content
    await client.post("/api/v1/letters/discard", json={"filter": {}, "why": "x"})
    before = await rows(book)
    assert (await imported(client, lines))["known"] == 2
    assert await rows(book) == before


async def test_faults_are_told_by_line_and_the_rest_is_taken(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await file(book, 1)
    good = (await client.get(EXPORT)).content.strip()
    line = json.loads(good)
    bad: list[bytes] = [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"[" * 100_000,
        json.dumps({**line, "id": "x"}).encode(),
        json.dumps({**line, "body": "?"}).encode(),
        json.dumps({**line, "more": 1}).encode(),
        json.dumps({**line, "format": 2}).encode(),
        json.dumps({**line, "retries": 2**40}).encode(),
        json.dumps({**line, "buried_at": "yesterday"}).encode(),
        json.dumps({**line, "error": "x" * 2_000_000}).encode(),
    ]
    fine = json.dumps({**line, "id": "f" * 32, "error": "a\x00b", "facts": {"a\x00": "\x00"}})
    done = await imported(client, b"\n".join([*bad, fine.encode()]))
    assert (done["letters"], done["faulty"]) == (1, len(bad) - 1)
    assert [fault["line"] for fault in done["faults"]] == list(range(2, len(bad) + 1))
    assert done["faults"][-1]["what"] == "the line is longer than 1048576 bytes"
    taken = (await client.get(f"/api/v1/letters/{'f' * 32}")).json()
    assert taken["error"] == "a\u2400b"


async def test_an_endless_line_is_not_held(client: httpx2.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000
        yield b"\n{}\n"

    answer = await client.post(IMPORT, content=endless())
    assert [fault["line"] for fault in answer.json()["faults"]] == [1, 2]


async def test_a_ledger_that_is_away_is_a_problem(tmp_path: Path) -> None:
    book = Book(f"sqlite+aiosqlite:///{tmp_path / 'never.db'}")
    async with client_of(api_of(book)) as client:
        problem(await client.get(EXPORT), 503)
        for path in (
            "letters",
            f"letters/{'0' * 32}",
            "causes",
            "audit",
            "routes",
            "routes/test?key=",
        ):
            problem(await client.get(f"/api/v1/{path}"), 503)
        status = (await client.get("/api/v1/status")).json()
        assert (status["ledger"], status["health"]["database"]["ok"]) == (None, False)
    await book.close()
