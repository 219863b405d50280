"""The open book: a database on which every verb is one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from service.ledger.engine import IMMEDIATE, is_sqlite, open_engine
from service.ledger.reaching import reaching


class Book:
    """Connections to one database. Whatever its driver raises leaves here as LedgerAway."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine = open_engine(url)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that writes: all of it is kept at the end, or nothing."""
        with reaching(self._url):
            async with self._engine.connect() as connection:
                await connection.execution_options(**{IMMEDIATE: True})
                async with connection.begin():
                    yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that only looks."""
        with reaching(self._url):
            async with self._engine.connect() as connection:
                yield connection

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """An insert that can say what happens on a conflict; both dialects say it alike."""
        return sqlite.insert(table) if is_sqlite(self._url) else postgresql.insert(table)

    @property
    def is_sqlite(self) -> bool:
        """Whether it has one writer at a time."""
        return is_sqlite(self._url)

    async def close(self) -> None:
        """Give the connections back."""
        await self._engine.dispose()
