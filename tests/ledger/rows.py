"""Letters, causes and replays put straight into the tables, for tests that look at them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from service.edge.fields import encode_marks
from service.ledger.book import Book
from service.ledger.tables import BURIALS, CAUSE_HOURS, CAUSES, LETTERS, REPLAY_ITEMS, REPLAYS

NOW = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
CAUSE = "00000000000000c1"


def letter_row(number: int, **other: Any) -> dict[str, Any]:
    """A letter that is in order; each number is another."""
    body = other.pop("body", f'{{"order": {number}}}'.encode())
    row = {
        "id": f"{number:032x}",
        "letter": f"message-{number}",
        "state": "parked",
        "flow": "dlq_processor",
        "queue": "dlq-queue",
        "origin_queue": "orders",
        "exchange": "shop",
        "routing_key": "order.created",
        "cause": CAUSE,
        "error_type": "ValueError",
        "error": f"order {number} is wrong",
        "place": "shop/orders.py:12 in take",
        "reason": "failed 4 times: rejected by a consumer of orders",
        "retries": 3,
        "burials": 1,
        "replays": 0,
        "digest": sha256(body).digest(),
        "body": body,
        "headers": encode_marks({"tenant": "acme", "x-retry-count": 3}),
        "properties": b"\x80\x00\x10application/json",
        "facts": {
            "headers": {"tenant": "acme", "x-retry-count": 3},
            "properties": {"content_type": "application/json"},
        },
        "size": len(body),
        "content_type": "application/json",
        "first_failure": NOW - timedelta(minutes=1),
        "filed_at": NOW,
        "buried_at": NOW,
        "changed_at": NOW,
    }
    return row | other


def cause_row(id_: str = CAUSE, **other: Any) -> dict[str, Any]:
    """A cause that is in order."""
    row = {
        "id": id_,
        "version": 1,
        "title": "ValueError in shop/orders.py take",
        "error_type": "ValueError",
        "place": "shop/orders.py:12 in take",
        "state": "new",
        "first_seen": NOW - timedelta(hours=2),
        "last_seen": NOW,
        "changed_at": NOW,
        "burials": 1,
    }
    return row | other


def burial_row(letter: int, burial: int, **other: Any) -> dict[str, Any]:
    """An earlier burial."""
    row = {
        "letter": letter,
        "burial": burial,
        "digest": b"digest %d" % burial,
        "buried_at": NOW - timedelta(hours=1),
        "cause": CAUSE,
        "reason": "failed 4 times",
        "error_type": "ValueError",
        "error": "wrong",
        "retries": 3,
        "replay": None,
    }
    return row | other


def replay_row(id_: str, **other: Any) -> dict[str, Any]:
    """A running replay."""
    row = {
        "id": id_,
        "state": "running",
        "wanted": "run",
        "who": "anna",
        "selection": {},
        "attempts": "continued",
        "rate": 50.0,
        "canary": 1,
        "stop_percent": 10.0,
        "watch_seconds": 30.0,
        "total": 10,
        "request_digest": b"digest",
        "created_at": NOW,
    }
    return row | other


async def fill(book: Book, table: str, *rows: dict[str, Any]) -> None:
    """Put rows into a table, in this order."""
    tables = {
        "letters": LETTERS,
        "burials": BURIALS,
        "causes": CAUSES,
        "cause_hours": CAUSE_HOURS,
        "replays": REPLAYS,
        "replay_items": REPLAY_ITEMS,
    }
    async with book.writing() as connection:
        for row in rows:
            await connection.execute(tables[table].insert().values(**row))


async def file(book: Book, count: int, **other: Any) -> None:
    """So many letters of one cause, and the cause."""
    await fill(book, "causes", cause_row(burials=count))
    await fill(book, "letters", *(letter_row(number, **other) for number in range(1, count + 1)))
