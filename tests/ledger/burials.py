"""Burials as intake hands them to the ledger, made up for a test."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table, select

from service.core.fingerprint import Failure, cause_of
from service.core.identity import body_digest, burial_digest, letter_identity
from service.ledger.book import Book
from service.ledger.burial import Burial

NOW = datetime(2026, 11, 18, 3, 30, tzinfo=UTC)


def burial(letter: str = "a", attempt: int = 1, error: str = "boom", **others: Any) -> Burial:
    """One attempt of one letter; another attempt has other headers."""
    body, queue = others.pop("body", b"{}"), others.pop("origin_queue", "orders")
    headers = b"\x07attempt" + b"I" + attempt.to_bytes(4, "big")
    values: dict[str, Any] = {
        "id": letter_identity(letter, queue, body_digest(body)),
        "letter": letter,
        "flow": "dlq_processor",
        "queue": "dlq-queue",
        "origin_queue": queue,
        "exchange": "shop",
        "routing_key": "order.created",
        "cause": cause_of(Failure(error_type="Boom", error=error)),
        "error_type": "Boom",
        "error": error,
        "place": "",
        "reason": f"attempt {attempt}",
        "retries": attempt,
        "digest": burial_digest(b"", headers, body_digest(body)),
        "body": body,
        "headers": headers,
        "properties": b"\x00\x00",
        "facts": '{"headers":{"attempt":1},"properties":{}}',
        "content_type": "application/json",
        "first_failure": NOW,
    }
    return Burial(**values | others)


async def rows(book: Book, table: Table) -> list[dict[str, Any]]:
    """Everything in a table."""
    async with book.reading() as connection:
        found = await connection.execute(select(table))
        return [dict(row) for row in found.mappings()]
