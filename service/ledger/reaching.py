"""What the drivers raise, as one sentence: where, why and what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]  # it ships no types
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from service.ledger.away import LedgerAway
from service.ledger.engine import is_sqlite, sqlite_file

DRIVERS = (
    OSError,  # TimeoutError is one
    UnicodeError,  # a host name that is none
    sqlite3.Error,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
FAULTS = (SQLAlchemyError, *DRIVERS)


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Whatever the drivers raise inside becomes LedgerAway."""
    try:
        yield
    except FAULTS as error:
        raise LedgerAway(f"{place(url)} {_reason(_root(error))}") from error


def place(url: str) -> str:
    """Which database, without its password."""
    if is_sqlite(url):
        return f"SQLite {sqlite_file(url)}"
    parts = urlsplit(url)
    return f"PostgreSQL {parts.netloc.rpartition('@')[2] or 'localhost'}{parts.path}"


def _root(error: BaseException) -> BaseException:
    """The driver's own error, below what SQLAlchemy wraps around it."""
    inner = error.orig if isinstance(error, DBAPIError) else error.__cause__
    return error if inner is None or isinstance(error, DRIVERS) else _root(inner)


def _reason(error: BaseException) -> str:
    words = str(error).splitlines()[0] if str(error) else type(error).__name__
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError():
            return f"refuses the user: {words}; check database.url"
        case asyncpg.InvalidCatalogNameError():
            return f"does not exist: {words}; create it or change database.url"
        case asyncpg.UndefinedTableError():
            return f"has no table {_quoted(words)}; run: dlo db upgrade"
        case sqlite3.OperationalError() if "no such table: " in words:
            return f"has no table {words.rpartition(': ')[2]}; run: dlo db upgrade"
        case FileNotFoundError():
            return "does not exist; run: dlo db upgrade"
        case sqlite3.Error() | PermissionError():
            return f"cannot be used: {words}; check the file and its folder"
        case TimeoutError():
            return "did not answer in time; is it running, and is database.url right?"
        case ConnectionRefusedError():
            return "refuses connections; is it running, and is database.url right?"
        case OSError():
            return f"cannot be reached: {words}; is it running, and is database.url right?"
        case _:
            return f"cannot be used: {words}"


def _quoted(words: str) -> str:
    """`relation "outbox" does not exist` → `outbox`."""
    return words.split('"')[1] if words.count('"') >= 2 else "it needs"
