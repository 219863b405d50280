"""Rows of the ledger, as intake files them, for tests that begin there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from sqlalchemy import select

from service.core.states import ItemState, LetterState
from service.edge.fields import encode_marks
from service.ledger.book import Book
from service.ledger.tables import LETTERS, REPLAY_ITEMS

THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NO_PROPERTIES = b"\x00\x00"


def row(number: int, **different: object) -> dict[str, object]:
    """A parked letter that died in `orders`."""
    name = f"letter-{number}"
    plain: dict[str, object] = {
        "id": sha256(name.encode()).hexdigest()[:32],
        "letter": name,
        "state": LetterState.PARKED.value,
        "flow": "dlq_processor",
        "queue": "dlq-queue",
        "origin_queue": "orders",
        "exchange": "shop",
        "routing_key": "order.created",
        "cause": "c" * 16,
        "error_type": "ValueError",
        "error": "boom",
        "place": "",
        "reason": "failed 4 times: boom",
        "retries": 3,
        "digest": sha256(name.encode()).digest(),
        "body": f"{number:05}".encode(),
        "headers": b"",
        "properties": NO_PROPERTIES,
        "facts": {"headers": {}, "properties": {}},
        "size": 5,
        "content_type": "",
        **dict.fromkeys(("first_failure", "filed_at", "buried_at", "changed_at"), THEN),
    }
    return {**plain, **different}


def table(headers: Mapping[str, str | int]) -> bytes:
    """A header table as the wire has it."""
    return encode_marks(headers)


async def park(book: Book, count: int, first: int = 1, **different: object) -> None:
    """So many letters, oldest first."""
    rows = [row(number, **different) for number in range(first, first + count)]
    async with book.writing() as connection:
        await connection.execute(LETTERS.insert(), rows)


async def states(book: Book) -> dict[str, str]:
    """The state of every letter, by its message id."""
    async with book.reading() as connection:
        found = await connection.execute(select(LETTERS.c.letter, LETTERS.c.state))
        return {letter: state for letter, state in found}  # noqa: C416  # rows, not pairs


async def results(book: Book, job: str) -> list[ItemState]:
    """What became of each letter of a job, in its order."""
    own = REPLAY_ITEMS.c
    wanted = select(own.state).where(own.replay == job).order_by(own.position)
    async with book.reading() as connection:
        return [ItemState(state) for state in (await connection.execute(wanted)).scalars()]


def after(seconds: float) -> datetime:
    """A moment of the test's own clock."""
    return THEN + timedelta(seconds=seconds)
