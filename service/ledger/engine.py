"""The door to the database: an engine for SQLite or PostgreSQL."""

import asyncio
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path

import aiosqlite
import asyncpg  # type: ignore[import-untyped]  # it ships no types
from sqlalchemy import URL, Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

CONNECT_SECONDS = 3
CLOSE_SECONDS = 1
COMMAND_SECONDS = 10
BUSY_SECONDS = 5
IMMEDIATE = "dlo_immediate"


def is_sqlite(url: str) -> bool:
    """Whether the ledger is a file."""
    return url.startswith("sqlite")


def sqlite_file(url: str) -> Path:
    """The file of an SQLite URL."""
    return Path(url.partition(":///")[2])


def open_engine(url: str) -> AsyncEngine:
    """An engine with short time-outs; the folder of an SQLite file is made where it is missing."""
    if is_sqlite(url):
        return _sqlite(url)
    # A connection pooled before the server was restarted is dead: ask before use.
    return create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: dial(url), pool_size=4, pool_pre_ping=True
    )


async def dial(url: str) -> asyncpg.Connection:
    """A bare PostgreSQL connection. The driver reads the URL itself: it knows sslmode, passfile …"""
    server = url.replace("+asyncpg", "", 1)
    return await asyncpg.connect(
        server,
        timeout=CONNECT_SECONDS,
        command_timeout=COMMAND_SECONDS,
        connection_class=_Connection,
    )


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg ships no types
    """A connection that can be left at any time: the other side of a dead line never says goodbye."""

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  # asyncpg's
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await super().close(timeout=timeout or CLOSE_SECONDS)
        self.terminate()


def _sqlite(url: str) -> AsyncEngine:
    # Not the URL as text: a file may have a "?" in its name.
    named = URL.create("sqlite+aiosqlite", database=str(sqlite_file(url)))
    engine = create_async_engine(named, async_creator=lambda: open_file(url))
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


async def open_file(url: str) -> aiosqlite.Connection:
    """A bare SQLite connection; its thread never keeps the process from ending."""
    _make_folder(url)
    # The driver would open transactions late and never for DDL: with no isolation level, we do.
    free = {"check_same_thread": False, "isolation_level": None}
    connection = _File(partial(sqlite3.connect, sqlite_file(url), **free), iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy does where it opens the file itself
    await connection
    try:
        for pragma in (f"busy_timeout = {BUSY_SECONDS * 1000}", "foreign_keys = ON"):
            await connection.execute_fetchall(f"PRAGMA {pragma}")
        await _write_ahead(connection)
    except BaseException:
        connection.stop()
        raise
    return connection


async def _write_ahead(connection: aiosqlite.Connection) -> None:
    """Of those that open a new file at once only one may change its mode, and SQLite turns the others
    away without the patience that it has for all else."""
    loop = asyncio.get_running_loop()
    until = loop.time() + BUSY_SECONDS
    while True:
        try:
            await connection.execute_fetchall("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or loop.time() > until:
                raise
        await asyncio.sleep(0.02)


class _File(aiosqlite.Connection):
    """A connection that can be left twice.

    Whoever is cancelled while leaving stops the thread at once, and the leaving that goes on behind
    his back asks it to stop again: aiosqlite would wait for ever for a thread that has ended.
    """

    _stopping: asyncio.Future[object] | None = None

    def stop(self) -> asyncio.Future[object] | None:
        if self._running:
            self._stopping = super().stop()
        return self._stopping


def _make_folder(url: str) -> None:
    """When connecting, not before: a folder that cannot be made is a database that is away."""
    try:
        sqlite_file(url).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"its folder cannot be made ({error.strerror})"
        raise sqlite3.OperationalError(reason) from error


def _begin(connection: Connection) -> None:
    """A writer takes the lock at once: one that began as a reader cannot wait for it."""
    immediate = connection.get_execution_options().get(IMMEDIATE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
