"""Many letters of many causes in a ledger, made by the database itself: `just seed 1000000`."""

from __future__ import annotations

import argparse
import asyncio
import time

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from service.ledger.book import Book
from service.ledger.engine import is_sqlite
from service.ledger.schema import upgrade
from service.settings import load

CHUNK = 20_000
CAUSES = 200
COLUMNS = (
    *("id", "letter", "state", "flow", "queue", "origin_queue", "exchange", "routing_key", "cause"),
    *("error_type", "error", "place", "reason", "retries", "replays", "digest", "body", "headers"),
    *("properties", "facts", "size", "content_type"),
    *("first_failure", "filed_at", "buried_at", "changed_at"),
)
# Old letters are mostly done with, new ones mostly not; a tenth of all causes has most letters.
STATE = """CASE WHEN n % 100 < 30 + 40 * n / {total} THEN 'parked' WHEN n % 100 < 72 THEN 'handled'
 WHEN n % 100 < 90 THEN 'quiet' WHEN n % 100 < 95 THEN 'back' WHEN n % 100 < 99 THEN 'sent'
 ELSE 'discarded' END"""
CAUSE = "CASE WHEN n % 10 < 8 THEN n % 20 ELSE n % {causes} END"
FLOW = """CASE n % 8 WHEN 0 THEN 'freeflow' WHEN 1 THEN 'event_bus' WHEN 2 THEN 'settlement'
 ELSE 'dlq_processor' END"""
ERROR = "'order ' || n || ' was refused: amount ' || (n % 977) || ' is not what was agreed upon'"
TYPE = "'shop.errors.Error' || (n % 20)"
KEY = "'order.kind' || (n % 200)"
FACTS = """'{"headers": {"tenant": "tenant-' || (n % 50) || '", "x-retry-count": 3},
 "properties": {"content_type": "application/json"}}'"""


async def seed(book: Book, total: int, sqlite: bool) -> None:
    """Fill an empty ledger: letters in chunks, then their causes and hours."""
    for start in range(1, total + 1, CHUNK):
        stop = min(start + CHUNK - 1, total)
        async with book.writing() as connection:
            await connection.execute(text(_letters(start, stop, total, sqlite)))
    async with book.writing() as connection:
        for statement in _causes(sqlite):
            await connection.execute(text(statement))
    if not sqlite:
        await _analyze(book)


def _letters(start: int, stop: int, total: int, sqlite: bool) -> str:
    numbers = (
        f"WITH RECURSIVE s(n) AS (SELECT {start} UNION ALL SELECT n + 1 FROM s WHERE n < {stop})"
        if sqlite
        else f"WITH s AS (SELECT n FROM generate_series({start}, {stop}) AS n)"
    )
    cause = CAUSE.format(causes=CAUSES)
    values = (
        *(_hex("n", 32, sqlite), "'letter-' || n", STATE.format(total=total), FLOW),
        *("'dlq-queue'", "'orders.' || (n % 50)", "'shop'", KEY, _hex(f"({cause})", 16, sqlite)),
        *(TYPE, ERROR, "'shop/orders.py:' || (n % 20) || ' in take'"),
        *(
            "'failed 4 times: rejected by a consumer'",
            "3",
            "CASE WHEN n % 100 < 70 THEN 0 ELSE 1 END",
        ),
        *(_bytes("'digest ' || n", sqlite), _bytes(_body(sqlite), sqlite)),
        *(_bytes("'headers'", sqlite), _bytes("'properties'", sqlite)),
        *(FACTS if sqlite else f"({FACTS})::jsonb", "512", "'application/json'"),
        *[_moment(f"{total} - n", sqlite)] * 4,
    )
    into = f"INSERT INTO letters ({', '.join(COLUMNS)})"
    rows = f"SELECT {', '.join(values)} FROM s"
    return f"{into} {numbers} {rows}"


def _causes(sqlite: bool) -> tuple[str, str]:
    hour = (
        "strftime('%Y-%m-%d %H:00:00.000000', buried_at)"
        if sqlite
        else "date_trunc('hour', buried_at)"
    )
    return (
        "INSERT INTO causes (id, version, title, error_type, place, state, first_seen, last_seen,"
        " changed_at, burials) SELECT cause, 1, min(error_type) || ' in take', min(error_type),"
        " min(place), 'new', min(buried_at), max(buried_at), max(buried_at), count(*)"
        " FROM letters GROUP BY cause",
        f"INSERT INTO cause_hours (cause, hour, burials) SELECT cause, {hour}, count(*)"
        " FROM letters GROUP BY 1, 2",
    )


async def _analyze(book: Book) -> None:
    """What autovacuum does within minutes; it cannot be done inside a transaction."""
    async with book.reading() as connection:
        await _bare(connection, "VACUUM ANALYZE")


async def _bare(connection: AsyncConnection, statement: str) -> None:
    raw = await connection.get_raw_connection()
    driver = raw.driver_connection
    assert driver is not None
    await driver.execute(statement, timeout=600)


def _hex(number: str, digits: int, sqlite: bool) -> str:
    word = f"printf('%x', {number})" if sqlite else f"to_hex({number})"
    padded = f"substr('{'0' * digits}' || {word}, -{digits})"
    return padded if sqlite else f"lpad({word}, {digits}, '0')"


def _bytes(words: str, sqlite: bool) -> str:
    return f"CAST({words} AS BLOB)" if sqlite else f"convert_to({words}, 'UTF8')"


def _body(sqlite: bool) -> str:
    filler = "printf('%.480c', 'x')" if sqlite else "repeat('x', 480)"
    return f"""'{{"order": ' || n || ', "note": "' || {filler} || '"}}'"""


def _moment(seconds: str, sqlite: bool) -> str:
    """A letter a second until now."""
    if sqlite:
        return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || ({seconds}) || ' seconds')"
    return f"now() - ({seconds}) * interval '1 second'"


async def main() -> None:
    """Seed the ledger that the settings name."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("letters", type=int, nargs="?", default=1_000_000)
    count = asked.parse_args().letters
    url = load().database.url.get_secret_value()
    await upgrade(url)
    book, began = Book(url), time.monotonic()
    try:
        await seed(book, count, is_sqlite(url))
    finally:
        await book.close()
    print(f"{count:,} letters in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
