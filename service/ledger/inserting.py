"""New letters into the table, many in one statement: this is what intake costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import LetterState
from service.ledger.burial import Burial
from service.ledger.tables import LETTERS

TEXTS = (
    *("id", "letter", "state", "flow", "queue", "origin_queue", "exchange", "routing_key"),
    *("cause", "error_type", "error", "place", "reason", "content_type"),
)
KINDS = dict.fromkeys(TEXTS, "text") | {"retries": "int", "size": "int", "facts": "text"}
KINDS |= dict.fromkeys(("digest", "body", "headers", "properties"), "bytea")
KINDS |= {"first_failure": "timestamptz"}
MOMENTS = ("filed_at", "buried_at", "changed_at")
COLUMNS = (*KINDS, *MOMENTS)

# One array a column: one statement, one plan and one trigger for a whole batch. A letter that another
# process files at this moment is waited for, and left to it.
INSERT = (
    f"INSERT INTO letters ({', '.join(COLUMNS)}) "
    f"SELECT {', '.join(name + '::jsonb' if name == 'facts' else name for name in KINDS)}, "
    f"{', '.join(f'${len(KINDS) + 1}::timestamptz' for _ in MOMENTS)} FROM unnest("
    + ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(KINDS.values(), 1))
    + f") AS letter({', '.join(KINDS)}) ON CONFLICT (id) DO NOTHING RETURNING id"
)
Row = tuple[object, ...]


async def insert_new(
    connection: AsyncConnection, burials: Sequence[Burial], now: datetime
) -> frozenset[str]:
    """Insert letters that have no row, each only once among these; the ids of those that had none."""
    if connection.dialect.name == "sqlite":
        return await _insert_unknown(connection, burials, now)
    rows = [row_of(burial) for burial in burials]
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    done = await connection.exec_driver_sql(INSERT, (*columns, now))
    return frozenset(done.scalars())


async def _insert_unknown(
    connection: AsyncConnection, burials: Sequence[Burial], now: datetime
) -> frozenset[str]:
    """We hold the only lock there is: nobody files between the look and the insert."""
    wanted = select(LETTERS.c.id).where(LETTERS.c.id.in_([burial.id for burial in burials]))
    known = frozenset((await connection.execute(wanted)).scalars())
    new = [burial for burial in burials if burial.id not in known]
    if new:
        await connection.execute(LETTERS.insert(), [_named(row_of(each), now) for each in new])
    return frozenset(burial.id for burial in new)


def row_of(burial: Burial) -> Row:
    """A burial in the order of the columns."""
    state = LetterState.DISCARDED if burial.discarded else LetterState.PARKED
    return (
        burial.id,
        burial.letter,
        state.value,
        burial.flow,
        burial.queue,
        burial.origin_queue,
        burial.exchange,
        burial.routing_key,
        burial.cause.id,
        burial.error_type,
        burial.error,
        burial.place,
        burial.reason,
        burial.content_type,
        burial.retries,
        len(burial.body),
        burial.facts,
        burial.digest,
        burial.body,
        burial.headers,
        burial.properties,
        burial.first_failure,
    )


def _named(row: Row, now: datetime) -> dict[str, object]:
    named = dict(zip(KINDS, row, strict=True)) | dict.fromkeys(MOMENTS, now)
    named["facts"] = json.loads(str(named["facts"]))
    return named
