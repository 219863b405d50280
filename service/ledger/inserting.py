"""New letters into the table, many in one statement: this is what intake costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import LetterState
from service.ledger.burial import Burial
from service.ledger.tables import LETTERS

NAMES = Burial._fields
SHARED_FROM, SHARED_TO = NAMES.index("flow"), NAMES.index("discarded") + 1
OTHERS = dict.fromkeys(("digest", "body", "headers", "properties"), "bytea")
OTHERS |= {"first_failure": "timestamptz", "retries": "int"}
OWN = {name: OTHERS.get(name, "text") for name in NAMES[:SHARED_FROM]}
SHARED = {name: OTHERS.get(name, "text") for name in (*NAMES[SHARED_FROM : SHARED_TO - 1], "state")}
MOMENTS = ("filed_at", "buried_at", "changed_at")
COLUMNS = (*OWN, *SHARED, "size", *MOMENTS)


def _unnested(columns: dict[str, str], first: int) -> str:
    arrays = ", ".join(f"${at}::{kind}[]" for at, kind in enumerate(columns.values(), first))
    return f"unnest({arrays})"


# One array a column: one statement, one plan and one trigger for a whole batch; what letters share is
# sent once. In the order of their ids: two batches with the same letters wait for each other, not in a
# circle. A letter that another process files at this moment is waited for, and left to it.
LETTER = OWN | {"shared": "int"}
NOW = f"${len(LETTER) + len(SHARED) + 1}::timestamptz"
INSERT = (
    f"INSERT INTO letters ({', '.join(COLUMNS)}) "
    f"SELECT {', '.join(name + '::jsonb' if name == 'facts' else name for name in OWN)}, "
    f"{', '.join(SHARED)}, octet_length(body), {', '.join(NOW for _ in MOMENTS)} "
    f"FROM {_unnested(LETTER, 1)} AS letter({', '.join(LETTER)}) "
    f"JOIN {_unnested(SHARED, len(LETTER) + 1)} WITH ORDINALITY AS alike({', '.join(SHARED)}, number) "
    'ON number = shared ORDER BY id COLLATE "C" ON CONFLICT (id) DO NOTHING RETURNING id'
)


async def insert_new(
    connection: AsyncConnection, burials: Sequence[Burial], now: datetime
) -> frozenset[str]:
    """Insert letters that have no row, each only once among these; the ids of those that had none."""
    if connection.dialect.name == "sqlite":
        return await _insert_unknown(connection, burials, now)
    done = await connection.exec_driver_sql(INSERT, (*_columns(burials), now))
    return frozenset(done.scalars())


def _columns(burials: Sequence[Burial]) -> Iterator[Sequence[object]]:
    """What is each letter's own, the number of what it shares with others, and what they share."""
    alike: dict[tuple[object, ...], int] = {}
    numbers = [alike.setdefault(b[SHARED_FROM:SHARED_TO], len(alike) + 1) for b in burials]
    yield from list(zip(*burials, strict=True))[:SHARED_FROM]
    yield numbers
    *texts, causes, discarded = zip(*alike, strict=True)
    yield from texts
    yield [cause.id for cause in causes]
    yield [_state(is_discarded) for is_discarded in discarded]


async def _insert_unknown(
    connection: AsyncConnection, burials: Sequence[Burial], now: datetime
) -> frozenset[str]:
    """We hold the only lock there is: nobody files between the look and the insert."""
    wanted = select(LETTERS.c.id).where(LETTERS.c.id.in_([burial.id for burial in burials]))
    known = frozenset((await connection.execute(wanted)).scalars())
    new = [burial for burial in burials if burial.id not in known]
    if new:
        await connection.execute(LETTERS.insert(), [_row(burial, now) for burial in new])
    return frozenset(burial.id for burial in new)


def _state(is_discarded: object) -> str:
    return (LetterState.DISCARDED if is_discarded else LetterState.PARKED).value


def _row(burial: Burial, now: datetime) -> dict[str, object]:
    return {
        **dict(zip(NAMES[: SHARED_TO - 1], burial, strict=False)),
        "cause": burial.cause.id,
        "state": _state(burial.discarded),
        "size": len(burial.body),
        "facts": json.loads(burial.facts),
        **dict.fromkeys(MOMENTS, now),
    }
