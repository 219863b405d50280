"""What the ledger holds, read beside a running service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Table, func, select

from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.ledger.tables import CAUSES, LETTERS


@asynccontextmanager
async def ledger(url: str) -> AsyncIterator[Book]:
    """The ledger, migrated."""
    await upgrade(url)
    book = Book(url)
    try:
        yield book
    finally:
        await book.close()


async def letters(book: Book) -> list[dict[str, Any]]:
    """Every letter, in the order of filing."""
    return await _all(book, LETTERS)


async def causes(book: Book) -> dict[str, int]:
    """How many burials each cause has, by its title."""
    return {row["title"]: row["burials"] for row in await _all(book, CAUSES)}


async def count(book: Book) -> int:
    """How many letters there are."""
    async with book.reading() as connection:
        return int(await connection.scalar(select(func.count()).select_from(LETTERS)) or 0)


async def _all(book: Book, table: Table) -> list[dict[str, Any]]:
    async with book.reading() as connection:
        found = await connection.execute(select(table).order_by(*table.primary_key))
        return [dict(row) for row in found.mappings()]
