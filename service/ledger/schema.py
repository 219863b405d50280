"""Bringing the database to the newest schema, and asking which one it has."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from service.ledger.away import LedgerAway
from service.ledger.engine import IMMEDIATE, is_sqlite, open_engine, sqlite_file
from service.ledger.reaching import reaching

# Any number that nobody else locks: two services that start at once migrate one after the other.
LOCK = 0x444C4F
MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


async def upgrade(url: str) -> str | None:
    """Migrate to the newest revision and return it; safe when several services start at once."""
    engine = open_engine(url)
    try:
        with reaching(url):
            async with engine.connect() as connection:
                await connection.execution_options(**{IMMEDIATE: True})
                async with connection.begin():
                    return await connection.run_sync(_upgrade, lock=not is_sqlite(url))
    finally:
        await engine.dispose()


async def current(url: str) -> str | None:
    """The revision of the database; None where it has never been migrated."""
    if is_sqlite(url) and not sqlite_file(url).exists():
        return None  # asking must not make the file
    engine = open_engine(url)
    try:
        with reaching(url):
            async with engine.connect() as connection:
                return await connection.run_sync(_current)
    finally:
        await engine.dispose()


def newest() -> str | None:
    """The revision this code wants."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _upgrade(connection: Connection, *, lock: bool) -> str | None:
    if lock:
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK})
    config = _config()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise LedgerAway(
            f"the ledger was migrated by a newer version of this service ({error}); start that one"
        ) from error
    return _current(connection)


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
