"""The guard: who comes in, who may act, and where a request may come from."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import httpx2
import pytest

from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.web.access import Person, Role
from service.web.guard import Door, Guard, Loopback, Proxy, Token, Tokens
from tests.ledger.rows import CAUSE, file
from tests.web.conftest import api_of, problem

LETTERS, DISCARD = "/api/v1/letters", "/api/v1/letters/discard"
ACT = {"filter": {}, "why": "test"}


def token(name: str, role: Role) -> Token:
    return Token(Person(name, role), sha256(f"the token of {name}".encode()).digest())


TOKENS = Tokens((token("vera", Role.VIEWER), token("otto", Role.OPERATOR)))
PROXY = Proxy("X-User", "X-Role", (ipaddress.ip_network("10.0.0.0/24"),))


@pytest.fixture
async def book(sqlite_url: str) -> AsyncIterator[Book]:
    """The guard knows no database."""
    await upgrade(sqlite_url)
    book = Book(sqlite_url)
    await file(book, 1)
    yield book
    await book.close()


class At:
    """An application, as it is reached at one address from another."""

    def __init__(self, app: Any, server: str, client: str) -> None:
        self._app, self._server, self._client = app, server, client

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        here = {"server": (self._server, 8000), "client": (self._client, 4000)}
        await self._app({**scope, **here}, receive, send)


def asking(
    book: Book, door: Door, *, server: str = "127.0.0.1", client: str = "127.0.0.1"
) -> httpx2.AsyncClient:
    guard = Guard(api_of(book), door)
    guard.sees_peers = True
    transport = httpx2.ASGITransport(At(guard, server, client))
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": text}


@pytest.mark.parametrize("server", ["10.0.0.1", "0.0.0.0", "::", "192.168.1.5", "/run/socket", ""])
async def test_without_a_login_no_other_address_is_served(book: Book, server: str) -> None:
    async with asking(book, Loopback(), server=server) as client:
        for path in (LETTERS, "/api/openapi.json", "/", "/api/v1/status"):
            assert "auth.mode" in problem(await client.get(path), 403)["hint"]
        problem(await client.post(DISCARD, json=ACT), 403)


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("[::1]:8000", True),
        ("127.1.2.3", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:8000", False),
        ("[::ffff:10.0.0.1]", False),
        ("", False),
    ],
)
async def test_a_name_that_leads_here_is_not_ours(book: Book, host: str, served: bool) -> None:
    for server in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        async with asking(book, Loopback(), server=server) as client:
            answer = await client.get(LETTERS, headers={"host": host})
            assert answer.status_code == (200 if served else 403)


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Anything",
        "Forwarded",
        "X-Real-IP",
        "Via",
    ],
)
async def test_without_a_login_nobody_comes_through_a_proxy(book: Book, header: str) -> None:
    async with asking(book, Loopback()) as client:
        refused = problem(await client.get(LETTERS, headers={header: "10.0.0.7"}), 403)
        assert "auth.mode" in refused["hint"]
        assert header.lower() in refused["detail"]
        problem(await client.post(DISCARD, json=ACT, headers={header: ""}), 403)
    async with asking(book, TOKENS) as client:
        given = {header: "10.0.0.7", **bearer("Bearer the token of vera")}
        assert (await client.get(LETTERS, headers=given)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "done"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8000"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"origin": "http://127.0.0.1:8000"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "http://127.0.0.1:9000"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://[broken"}, False),
        (
            {"sec-fetch-site": "same-origin", "origin": "https://dlo.example"},
            True,
        ),  # behind a proxy
        ({"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8000"}, False),
    ],
)
async def test_pages_elsewhere_may_not_act(book: Book, headers: dict[str, str], done: bool) -> None:
    async with asking(book, Loopback()) as client:
        answer = await client.post(DISCARD, json=ACT, headers=headers)
        left = (await client.get(f"{LETTERS}/count", params={"state": "parked"})).json()["letters"]
        assert (answer.status_code, left) == ((200, 0) if done else (403, 1))
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic the token of otto",
        "the token of otto",
        "Bearer é",
    ],
)
async def test_without_a_token_nothing_is_answered(book: Book, given: str) -> None:
    async with asking(book, TOKENS, server="10.0.0.1") as client:
        headers = {b"Authorization": given.encode()} if given else {}
        for path in (LETTERS, "/api/openapi.json", "/", "/api/v1/events"):
            answer = await client.get(path, headers=headers)
            problem(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"
        problem(await client.post(DISCARD, json=ACT, headers=headers), 401)


async def test_viewers_look_and_operators_act_and_the_audit_names_them(book: Book) -> None:
    async with asking(book, TOKENS, server="10.0.0.1") as client:
        vera, otto = bearer("Bearer the token of vera"), bearer("bearer the token of otto")
        assert (await client.get(LETTERS, headers=vera)).status_code == 200
        assert (await client.get("/api/v1/status", headers=vera)).json()["you"] == {
            "name": "vera",
            "role": "viewer",
        }
        refused = [
            client.post(DISCARD, json=ACT, headers=vera),
            client.post(DISCARD, json={**ACT, "dry_run": True}, headers=vera),
            client.post(f"/api/v1/causes/{CAUSE}/resolve", headers=vera),
            client.put("/api/v1/routes/a.b", json={}, headers=vera),
            client.delete("/api/v1/routes/a.b", headers=vera),
            client.post(f"{LETTERS}/import", content=b"", headers=vera),
            client.request("BREW", LETTERS, headers=vera),
        ]
        for answer in refused:
            assert "operator" in problem(await answer, 403)["hint"]
        assert (await client.post(DISCARD, json=ACT, headers=otto)).json()["letters"] == 1
        deeds = (await client.get("/api/v1/audit", headers=vera)).json()["items"]
        assert [deed["who"] for deed in deeds] == ["otto"]


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("10.0.0.7", {"X-User": "anna", "X-Role": "operator"}, 200),
        ("::ffff:10.0.0.7", {"X-User": "anna", "X-Role": "operator"}, 200),
        ("10.0.0.7", {"X-User": "anna", "X-Role": "viewer"}, 403),
        ("10.0.0.7", {"X-User": "anna"}, 403),
        ("10.0.0.7", {"X-User": "anna", "X-Role": "Operator!"}, 403),
        ("10.0.0.7", {"X-Role": "operator"}, 401),
        ("10.0.0.7", {"X-User": " ", "X-Role": "operator"}, 401),
        ("10.0.1.7", {"X-User": "anna", "X-Role": "operator"}, 403),
        ("127.0.0.1", {"X-User": "anna", "X-Role": "operator"}, 403),
        ("10.0.1.7", {"X-User": "a", "X-Role": "operator", "X-Forwarded-For": "10.0.0.7"}, 403),
    ],
)
async def test_a_proxy_is_believed_by_its_address(
    book: Book, client: str, headers: dict[str, str], status: int
) -> None:
    async with asking(book, PROXY, server="10.0.0.1", client=client) as asked:
        answer = await asked.post(DISCARD, json=ACT, headers=headers)
        assert answer.status_code == status, answer.text
        if status == 200:
            deeds = (await asked.get("/api/v1/audit", headers=headers)).json()["items"]
            assert deeds[0]["who"] == "anna"


async def test_a_header_sent_twice_names_nobody(book: Book) -> None:
    async with asking(book, PROXY, client="10.0.0.7") as client:
        twice = [("X-User", "anna"), ("X-User", "root"), ("X-Role", "operator")]
        problem(await client.get(LETTERS, headers=twice), 401)


async def test_a_forwarded_address_is_refused_where_it_may_hide_the_proxy(book: Book) -> None:
    transport = httpx2.ASGITransport(At(Guard(api_of(book), PROXY), "10.0.0.1", "10.0.0.7"))
    async with httpx2.AsyncClient(transport=transport, base_url="http://office") as client:
        headers = {"X-User": "anna", "X-Forwarded-For": "10.0.0.7"}
        problem(await client.get(LETTERS, headers=headers), 403)
        assert (await client.get(LETTERS, headers={"X-User": "anna"})).status_code == 200
