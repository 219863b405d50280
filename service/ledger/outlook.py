"""What a replay would do, before anything is done: counts by queue, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, exists, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import ItemState
from service.ledger.book import Book
from service.ledger.filters import Filter
from service.ledger.replays import chosen
from service.ledger.tables import CAUSES, LETTERS, REPLAY_ITEMS, REPLAY_TARGETS, REPLAYS

MOST_CAUSES = 20
TO_SEND = (ItemState.PENDING.value, ItemState.CLAIMED.value)


@dataclass(frozen=True, slots=True)
class Arriving:
    """A cause of the chosen letters that was seen only lately: it may not be mended yet."""

    cause: str
    title: str
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Outlook:
    """The letters that would be sent."""

    total: int
    queues: Mapping[str, int]
    homeless: int
    """Nobody knows where they died: they are left out unless a target is named."""
    held: int
    """Another replay is going to send these: whoever is first has them."""
    arriving: tuple[Arriving, ...]
    busy: Mapping[str, str]
    """Queues that another replay is sending to, and which."""


async def outlook(book: Book, wanted: Filter, target: str, lately: datetime) -> Outlook:
    """Look, and change nothing."""
    mine = chosen(wanted, target)
    async with book.reading() as connection:
        queues = await _queues(connection, mine, target)
        homeless = 0 if target else await _count(connection, _homeless(wanted))
        held = await _count(connection, mine & _is_held())
        arriving = await _arriving(connection, mine, lately)
        busy = await _busy(connection, queues)
    return Outlook(sum(queues.values()), queues, homeless, held, arriving, busy)


async def _queues(
    connection: AsyncConnection, mine: ColumnElement[bool], target: str
) -> dict[str, int]:
    whereto = literal(target).label("queue") if target else LETTERS.c.origin_queue.label("queue")
    counted = select(whereto, func.count().label("letters")).where(mine)
    if not target:
        counted = counted.group_by(LETTERS.c.origin_queue).order_by(LETTERS.c.origin_queue)
    rows = await connection.execute(counted)
    return {row.queue: row.letters for row in rows if row.letters}


def _homeless(wanted: Filter) -> ColumnElement[bool]:
    return chosen(wanted, "anywhere") & (LETTERS.c.origin_queue == "")


def _is_held() -> ColumnElement[bool]:
    own = REPLAY_ITEMS.c
    going_on = select(REPLAYS.c.id).where(REPLAYS.c.ended_at.is_(None))
    return exists().where(
        own.letter == LETTERS.c.number, own.state.in_(TO_SEND), own.replay.in_(going_on)
    )


async def _count(connection: AsyncConnection, condition: ColumnElement[bool]) -> int:
    counted = select(func.count()).select_from(LETTERS).where(condition)
    return await connection.scalar(counted) or 0


async def _arriving(
    connection: AsyncConnection, mine: ColumnElement[bool], lately: datetime
) -> tuple[Arriving, ...]:
    own = CAUSES.c
    wanted = (
        select(own.id, own.title, own.last_seen)
        .where(own.last_seen >= lately, exists().where(LETTERS.c.cause == own.id, mine))
        .order_by(own.last_seen.desc(), own.id)
        .limit(MOST_CAUSES)
    )
    rows = await connection.execute(wanted)
    return tuple(Arriving(row.id, row.title, row.last_seen) for row in rows)


async def _busy(connection: AsyncConnection, queues: Mapping[str, int]) -> dict[str, str]:
    own = REPLAY_TARGETS.c
    taken = select(own.queue, own.replay).where(own.queue.in_(list(queues)))
    return {row.queue: row.replay for row in await connection.execute(taken)}
