"""The life of a cause in people's hands: acknowledged, muted, resolved, noted; each with its deed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import CauseState
from service.ledger.again import again
from service.ledger.audit import Deed, write
from service.ledger.book import Book
from service.ledger.causes import Cause, NoCause, cause_of
from service.ledger.tables import CAUSES


class Act(StrEnum):
    """What people do to a cause."""

    ACKNOWLEDGE = "acknowledge"
    MUTE = "mute"
    UNMUTE = "unmute"
    RESOLVE = "resolve"


@dataclass(frozen=True, slots=True)
class NotNow:
    """The cause is in a state in which this makes no sense; nothing was done."""

    state: CauseState


@dataclass(frozen=True, slots=True)
class Step:
    """Out of which states, into which."""

    out_of: frozenset[CauseState]
    into: CauseState


LIVING = frozenset(CauseState) - {CauseState.RESOLVED}
STEPS: Mapping[Act, Step] = {
    Act.ACKNOWLEDGE: Step(LIVING - {CauseState.MUTED}, CauseState.ACKNOWLEDGED),
    Act.MUTE: Step(LIVING, CauseState.MUTED),
    Act.UNMUTE: Step(frozenset({CauseState.MUTED}), CauseState.ACKNOWLEDGED),
    Act.RESOLVE: Step(LIVING, CauseState.RESOLVED),
}


async def act(
    book: Book, id_: str, act: Act, deed: Deed, now: datetime, until: datetime | None = None
) -> Cause | NotNow | NoCause:
    """Take the step. Done twice it is done once: what is so already is no second deed."""
    step, muted_until = STEPS[act], until if act is Act.MUTE else None

    async def verb() -> Cause | NotNow | NoCause:
        async with book.writing() as connection:
            cause = await _locked(connection, id_, now)
            if isinstance(cause, NoCause):
                return cause
            if (cause.state, cause.muted_until) == (step.into, muted_until):
                return cause
            if cause.state not in step.out_of:
                return NotNow(cause.state)
            values = {"state": step.into.value, "muted_until": muted_until, "changed_at": now}
            await _change(connection, id_, values, deed, now)
            return await _read(connection, id_, now)

    return await again(verb)


async def annotate(
    book: Book, id_: str, note: str, owner: str, deed: Deed, now: datetime
) -> Cause | NoCause:
    """Write down what people know of a cause, and whose it is; its place in the list stays."""

    async def verb() -> Cause | NoCause:
        async with book.writing() as connection:
            cause = await _locked(connection, id_, now)
            if isinstance(cause, NoCause) or (cause.note, cause.owner) == (note, owner):
                return cause
            await _change(connection, id_, {"note": note, "owner": owner}, deed, now)
            return await _read(connection, id_, now)

    return await again(verb)


async def _locked(connection: AsyncConnection, id_: str, now: datetime) -> Cause | NoCause:
    """Nobody else changes it until we are done."""
    query = select(CAUSES).where(CAUSES.c.id == id_).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    return NoCause() if row is None else cause_of(row, now)


async def _read(connection: AsyncConnection, id_: str, now: datetime) -> Cause:
    return cause_of((await connection.execute(select(CAUSES).where(CAUSES.c.id == id_))).one(), now)


async def _change(
    connection: AsyncConnection, id_: str, values: Mapping[str, Any], deed: Deed, now: datetime
) -> None:
    await connection.execute(update(CAUSES).where(CAUSES.c.id == id_).values(**values))
    await write(connection, deed, now)
