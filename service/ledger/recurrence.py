"""Letters that have a row already: found, and buried once more."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, Text, any_, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import LetterState
from service.ledger.burial import Burial
from service.ledger.tables import BURIALS, LETTERS

HISTORY = ("digest", "buried_at", "cause", "reason", "error_type", "error", "retries", "replay")


@dataclass(frozen=True, slots=True)
class Known:
    """A letter's row, locked: what a further burial needs to know of it."""

    number: int
    state: LetterState
    burials: int
    digests: frozenset[bytes]
    """Of every burial so far."""
    replay: str | None = None
    """The job that holds it, or held it last."""


async def known(connection: AsyncConnection, ids: Collection[str]) -> dict[str, Known]:
    """The rows of these letters, locked in one order until the transaction ends."""
    if not ids:
        return {}
    names = ("id", "number", "state", "burials", "digest", "replay")
    wanted = select(*(LETTERS.c[name] for name in names)).where(_among(connection, ids))
    wanted = wanted.order_by(LETTERS.c.id).with_for_update()
    rows = (await connection.execute(wanted)).all()
    older = await _older(connection, [row.number for row in rows if row.burials > 1])
    return {
        row.id: Known(
            row.number,
            LetterState(row.state),
            row.burials,
            frozenset((row.digest, *older.get(row.number, ()))),
            row.replay,
        )
        for row in rows
    }


async def bury_again(
    connection: AsyncConnection, row: Known, burial: Burial, state: LetterState, now: datetime
) -> Known:
    """The row's facts become history, the burial's take their place."""
    here = LETTERS.c.number == row.number
    history = select(LETTERS.c.number, LETTERS.c.burials, *(LETTERS.c[name] for name in HISTORY))
    await connection.execute(
        insert(BURIALS).from_select(["letter", "burial", *HISTORY], history.where(here))
    )
    await connection.execute(update(LETTERS).where(here).values(**_newest(burial, state, now)))
    digests = row.digests | {burial.digest}
    return replace(row, state=state, burials=row.burials + 1, digests=digests)


def _among(connection: AsyncConnection, ids: Collection[str]) -> ColumnElement[bool]:
    """One array on PostgreSQL: two hundred parameters would be parsed anew for every batch."""
    if connection.dialect.name == "sqlite":
        return LETTERS.c.id.in_(ids)
    return LETTERS.c.id == any_(bindparam("ids", list(ids), ARRAY(Text)))


async def _older(connection: AsyncConnection, numbers: list[int]) -> dict[int, list[bytes]]:
    if not numbers:
        return {}
    wanted = select(BURIALS.c.letter, BURIALS.c.digest).where(BURIALS.c.letter.in_(numbers))
    older: dict[int, list[bytes]] = {}
    for row in await connection.execute(wanted):
        older.setdefault(row.letter, []).append(row.digest)
    return older


def _newest(burial: Burial, state: LetterState, now: datetime) -> dict[str, object]:
    texts = ("queue", "origin_queue", "exchange", "routing_key", "error_type", "error", "place")
    taken = (*texts, "reason", "retries", "digest", "body", "headers", "properties", "content_type")
    return {name: getattr(burial, name) for name in taken} | {
        "state": state.value,
        "flow": burial.flow,
        "cause": burial.cause.id,
        "facts": json.loads(burial.facts),
        "size": len(burial.body),
        "burials": LETTERS.c.burials + 1,
        "buried_at": now,
        "changed_at": now,
    }
