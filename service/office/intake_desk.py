"""What all takers share: the broker, the book, the inquest, and how much at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from service.ledger.book import Book
from service.ledger.filing import Filed
from service.office.inquest import Inquest

WRITTEN_AT_ONCE = 2


class Counter(Protocol):
    """Who counts what was filed."""

    def filed(self, flow: str, filed: Filed) -> None:
        """Some letters of this flow are in the ledger."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Desk:
    """What all takers share."""

    url: str
    book: Book
    inquest: Inquest
    counter: Counter
    prefetch: int = 2000
    batch: int = 500
    linger: timedelta = timedelta(milliseconds=50)
    pause: float = 2.0
    clock: Callable[[], datetime] = utc_now
    writing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Transactions at a time: SQLite has one writer; PostgreSQL writes one batch while the one before
    it goes to the disk."""


def writers(book: Book) -> asyncio.Semaphore:
    """How many transactions this database takes at a time."""
    return asyncio.Semaphore(1 if book.is_sqlite else WRITTEN_AT_ONCE)
