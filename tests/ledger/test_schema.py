"""Migrations on both databases: once, twice, by several services at once."""

import asyncio
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from service.ledger.away import LedgerAway
from service.ledger.engine import open_engine, sqlite_file
from service.ledger.schema import current, newest, upgrade
from service.ledger.tables import METADATA
from tests.ledger.conftest import run_sql

ROOT = Path(__file__).parents[2]
UPGRADE = "import asyncio, sys; from service.ledger.schema import upgrade; " + (
    "print(asyncio.run(upgrade(sys.argv[1])))"
)


async def test_migrating_twice_is_migrating_once(database_url: str) -> None:
    assert await current(database_url) is None
    assert await upgrade(database_url) == newest()
    await run_sql(database_url, "INSERT INTO dlq_event_config (name) VALUES ('kept')")
    assert await upgrade(database_url) == newest()
    assert await current(database_url) == newest()
    with pytest.raises(Exception, match=r"(?i)unique"):
        await run_sql(database_url, "INSERT INTO dlq_event_config (name) VALUES ('kept')")


async def test_several_services_start_at_once(database_url: str) -> None:
    starts = [
        asyncio.create_subprocess_exec(
            sys.executable, "-c", UPGRADE, database_url, cwd=ROOT, stdout=-1, stderr=-1
        )
        for _ in range(4)
    ]
    services = await asyncio.gather(*starts)
    said = await asyncio.gather(*(service.communicate() for service in services))
    assert [out.decode().strip() for out, _ in said] == [newest()] * 4, said


async def test_the_migrations_make_the_tables_the_code_knows(database_url: str) -> None:
    await upgrade(database_url)
    engine = open_engine(database_url)
    async with engine.connect() as connection:
        differences = await connection.run_sync(_differences)
    await engine.dispose()
    assert differences == []


def _differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), METADATA))


async def test_the_folder_of_an_sqlite_file_is_made(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/a/b/dlo.db"
    assert await current(url) is None
    assert not sqlite_file(url).exists()
    await upgrade(url)
    assert sqlite_file(url).exists()


async def test_what_bars_the_database_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a database, not even nearly")
    cases = {
        f"sqlite+aiosqlite:///{tmp_path}/file": "file is not a database; check the file",
        f"sqlite+aiosqlite:///{tmp_path}/file/dlo.db": "its folder cannot be made",
        "postgresql+asyncpg://u:p@127.0.0.1:1/d": "127.0.0.1:1/d refuses connections",
    }
    for url, words in cases.items():
        with pytest.raises(LedgerAway, match=words):
            await upgrade(url)


async def test_a_wrong_password_or_name_is_a_sentence_without_the_password(
    postgres_url: str,
) -> None:
    place = postgres_url.rpartition("@")[2]
    with pytest.raises(LedgerAway, match=r"refuses the user: .*; check database.url") as refused:
        await upgrade(f"postgresql+asyncpg://postgres:hunter2@{place}")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(LedgerAway, match=r"does not exist: .*; create it or change database.url"):
        await upgrade(f"{postgres_url}_nowhere")


async def test_a_ledger_of_a_newer_version_is_one_sentence(sqlite_url: str) -> None:
    await upgrade(sqlite_url)
    await run_sql(sqlite_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerAway, match="migrated by a newer version of this service"):
        await upgrade(sqlite_url)
