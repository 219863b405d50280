"""A connection can be left at any moment, and twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from service.ledger.engine import open_file


async def test_a_file_that_is_left_twice_is_left(tmp_path: Path) -> None:
    """Cancelled while it leaves, SQLAlchemy stops the connection's thread; the leaving goes on."""
    connection = await open_file(f"sqlite+aiosqlite:///{tmp_path / 'ledger.db'}")
    leaving = asyncio.create_task(connection.close())
    await asyncio.sleep(0)
    connection.stop()
    leaving.cancel()
    left, _ = await asyncio.wait([leaving], timeout=5)
    assert left == {leaving}


async def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Only one may change its mode; SQLite turns the others away at once."""
    for number in range(40):
        url = f"sqlite+aiosqlite:///{tmp_path / str(number)}.db"
        for connection in await asyncio.gather(*(open_file(url) for _ in range(8))):
            await connection.close()
