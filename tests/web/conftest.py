"""The API over a ledger, without a broker: every router, asked in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from service.core.route import Route, RouteBook
from service.edge.fields import decode_table
from service.edge.rewriting import rewrite
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.topology.tables import Topology
from service.web.api import (
    audit,
    causes,
    create_api,
    letter_acts,
    letter_copies,
    letters,
    routes,
    status,
    topology,
)
from service.web.health import Health
from tests.ledger.rows import NOW

TIERS = tuple(timedelta(seconds=n) for n in (10, 15, 20))
SETTINGS = RouteBook.of([Route("payment.*", 5)])


def api_of(book: Book, *, may_edit: bool = True) -> Any:
    """Every router of the ledger."""
    desk = letters.Desk(decode_table, rewrite, may_edit=may_edit, clock=lambda: NOW)
    return create_api(
        [
            letter_copies.router(book, 1024 * 1024, lambda: NOW),
            letters.router(book, desk),
            letter_acts.router(book, desk),
            causes.router(book, lambda: NOW),
            audit.router(book),
            routes.router(book, routes.Rules(TIERS, 3, (("settings", SETTINGS),)), lambda: NOW),
            topology.router(Topology(), ()),
            status.router(
                book,
                {"database": lambda: Health(True, "up")},
                "1",
                may_edit=may_edit,
                clock=lambda: NOW,
            ),
        ],
        "1",
    )


def client_of(app: Any) -> httpx2.AsyncClient:
    """Asks an application in memory."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost")


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


@pytest.fixture
async def client(book: Book) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(api_of(book)) as client:
        yield client


@pytest.fixture
async def door(sqlite_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Where the database does not matter: what is asked for never reaches it."""
    await upgrade(sqlite_url)
    book = Book(sqlite_url)
    async with client_of(api_of(book)) as client:
        yield client
    await book.close()


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """A refusal as RFC 9457 has it, with a hint."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["title"]
    assert body["hint"]
    return body
