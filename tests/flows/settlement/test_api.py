"""The door: what it takes, what it refuses and how it says so; on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from service.flows.settlement.api import router
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.web.api import LARGEST, create_api
from tests.flows.settlement.till import PATH, payment


def client_of(book: Book, told: list[None] | None = None) -> httpx2.AsyncClient:
    routes = router(book, lambda: None if told is None else told.append(None))
    transport = httpx2.ASGITransport(create_api([routes], "1"))
    return httpx2.AsyncClient(transport=transport, base_url="http://office")


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    await upgrade(database_url)
    book = Book(database_url)
    async with client_of(book) as client:
        yield client
    await book.close()


@pytest.fixture
async def door(sqlite_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Where the database does not matter."""
    await upgrade(sqlite_url)
    book = Book(sqlite_url)
    async with client_of(book) as client:
        yield client
    await book.close()


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["hint"]
    assert body["title"]
    return body


async def test_a_transaction_is_made_and_found(client: httpx2.AsyncClient) -> None:
    answer = await client.post(PATH, json=payment("ACME-1", reference="invoice ⅔"))
    assert answer.status_code == 201
    made = answer.json()
    assert (made["status"], made["amount"], made["reference"]) == ("created", "19.90", "invoice ⅔")
    found = (await client.get(answer.headers["location"])).json()
    assert {key: found[key] for key in made} == made
    assert (found["attempts"], found["settled_at"]) == (0, None)


async def test_the_same_key_twice_is_one_transaction(client: httpx2.AsyncClient) -> None:
    key = {"Idempotency-Key": "order 42"}
    asked = [client.post(PATH, json=payment(), headers=key) for _ in range(5)]
    answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    same = await client.post(PATH, json=payment(amount=19.9), headers=key)
    assert same.text == answers[0].text  # the same amount, written otherwise
    other = problem(await client.post(PATH, json=payment("OTHER"), headers=key), 409)
    assert answers[0].json()["id"] in other["detail"]
    unkeyed = [await client.post(PATH, json=payment()) for _ in range(2)]
    assert len({answer.json()["id"] for answer in (*unkeyed, *answers)}) == 3


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"amount": 0}, "body.amount"),
        ({"amount": "-1"}, "body.amount"),
        ({"amount": "0.001"}, "body.amount"),
        ({"amount": "1e300"}, "body.amount"),
        ({"amount": "NaN"}, "body.amount"),
        ({"amount": None}, "body.amount"),
        ({"currency": "euro"}, "body.currency"),
        ({"account": ""}, "body.account"),
        ({"account": "a\x00b"}, "body.account"),
        ({"account": "a" * 65}, "body.account"),
        ({"reference": "line\nbreak"}, "body.reference"),
        ({"reference": "r" * 141}, "body.reference"),
        ({"status": "settled"}, "body.status"),
    ],
)
async def test_what_cannot_be_a_transaction(
    door: httpx2.AsyncClient, change: dict[str, object], where: str
) -> None:
    told = problem(await door.post(PATH, json=payment() | change), 422)
    assert [one["where"] for one in told["errors"]] == [where]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b"\xff\xfe", b"[" * 50_000, b'{"\\ud800": 1}', b'{"account": "\\ud800"}'],
    ids=["empty", "list", "half", "bytes", "deep", "half a name", "half a value"],
)
async def test_bodies_that_are_no_json_are_problems(door: httpx2.AsyncClient, body: bytes) -> None:
    answer = await door.post(PATH, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    problem(answer, answer.status_code)


async def test_too_large_a_request_is_not_read_to_its_end(door: httpx2.AsyncClient) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while read < 100 * LARGEST:
            read += LARGEST // 4
            yield b"x" * (LARGEST // 4)

    problem(await door.post(PATH, content=endless(), headers={"content-type": "text/json"}), 413)


@pytest.mark.parametrize("path", [str(uuid4()), "nope", "%00", "1" * 500])
async def test_what_is_not_there(client: httpx2.AsyncClient, path: str) -> None:
    problem(await client.get(f"{PATH}/{path}"), 404)
    problem(await client.get(f"/{path}"), 404)
    problem(await client.delete(PATH), 405)


async def test_a_ledger_that_is_away_is_a_problem_and_not_a_promise(sqlite_url: str) -> None:
    book, told = Book(sqlite_url), list[None]()  # never migrated: it has no tables
    async with client_of(book, told) as client:
        problem(await client.post(PATH, json=payment()), 503)
        problem(await client.get(f"{PATH}/{uuid4()}"), 503)
        assert told == []
        await upgrade(sqlite_url)
        assert (await client.post(PATH, json=payment())).status_code == 201
        assert told == [None]
    await book.close()


async def test_the_api_describes_itself(door: httpx2.AsyncClient) -> None:
    document = (await door.get("/api/openapi.json")).json()
    assert set(document["paths"]) == {PATH, f"{PATH}/{{id}}"}
    answers = document["paths"][PATH]["post"]["responses"]
    assert {"201", "409", "422", "503"} <= set(answers)
    assert "application/problem+json" in answers["422"]["content"]
