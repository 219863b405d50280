"""The peer: the same rows into the same table, by asyncpg alone, in batches of the same size."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import uvloop

from service.ledger.inserting import COLUMNS, MOMENTS, OWN, SHARED
from service.settings.ledger import Ledger

BATCH = Ledger().batch  # the service's own
KIND_OF = OWN | SHARED | {"size": "int"} | dict.fromkeys(MOMENTS, "timestamptz")
NAMES = ", ".join(COLUMNS)
PLACES = ", ".join(f"${number}" for number in range(1, len(COLUMNS) + 1))
ROW_BY_ROW = f"INSERT INTO letters ({NAMES}) VALUES ({PLACES})"
ARRAYS = ", ".join(f"${number}::{KIND_OF[name]}[]" for number, name in enumerate(COLUMNS, 1))
CAST = ", ".join(f"{name}::jsonb" if name == "facts" else name for name in COLUMNS)
AT_ONCE = f"INSERT INTO letters ({NAMES}) SELECT {CAST} FROM unnest({ARRAYS}) AS row({NAMES})"


async def insert(database: str, how: str) -> dict[str, float]:
    """Take the rows that intake left out of the table, empty it, and put them there again."""
    connection = await asyncpg.connect(database.replace("+asyncpg", ""))
    rows = [tuple(row) for row in await connection.fetch(f"SELECT {NAMES} FROM letters")]
    await connection.execute("TRUNCATE letters, letter_counts, causes, cause_hours")
    began, cpu = time.perf_counter(), _cpu()
    for start in range(0, len(rows), BATCH):
        async with connection.transaction():
            await _batch(connection, rows[start : start + BATCH], how)
    seconds, used = time.perf_counter() - began, _cpu() - cpu
    await connection.close()
    return {"seconds": seconds, "cpu": used}


async def _batch(connection: Any, rows: Sequence[tuple[Any, ...]], how: str) -> None:
    if how == "executemany":
        await connection.executemany(ROW_BY_ROW, rows)
    else:
        await connection.execute(AT_ONCE, *map(list, zip(*rows, strict=True)))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(uvloop.run(insert(sys.argv[1], sys.argv[2]))))
