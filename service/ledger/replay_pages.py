"""Replays as people look at them: one with its figures, pages of many, the letters of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select

from service.core.states import ItemState, ReplayState
from service.ledger.book import Book
from service.ledger.replays import Replay, Unknown, figures_of, replay_of
from service.ledger.tables import LETTERS, REPLAY_ITEMS, REPLAYS


@dataclass(frozen=True, slots=True)
class Item:
    """One letter of a replay."""

    position: int
    letter: str
    queue: str
    state: ItemState
    says: str
    sent_at: datetime | None
    ended_at: datetime | None


async def find(book: Book, id_: str) -> Replay | Unknown:
    """One job, with its figures."""
    async with book.reading() as connection:
        found = await connection.execute(select(REPLAYS).where(REPLAYS.c.id == id_))
        row = found.one_or_none()
        return Unknown() if row is None else replay_of(row, await figures_of(connection, id_))


async def newest(
    book: Book, states: tuple[ReplayState, ...], limit: int, below: int | None = None
) -> tuple[Replay, ...]:
    """Jobs, newest first, below this number."""
    wanted = select(REPLAYS).order_by(REPLAYS.c.number.desc()).limit(limit)
    if states:
        wanted = wanted.where(REPLAYS.c.state.in_([state.value for state in states]))
    if below is not None:
        wanted = wanted.where(REPLAYS.c.number < below)
    async with book.reading() as connection:
        return tuple(replay_of(row) for row in await connection.execute(wanted))


async def items(
    book: Book, id_: str, states: tuple[ItemState, ...], limit: int, above: int = 0
) -> tuple[Item, ...]:
    """The letters of a job in its order, above this position."""
    own = REPLAY_ITEMS.c
    wanted = (
        select(
            own.position, LETTERS.c.id, own.queue, own.state, own.says, own.sent_at, own.ended_at
        )
        .outerjoin_from(REPLAY_ITEMS, LETTERS, LETTERS.c.number == own.letter)
        .where(own.replay == id_, own.position > above)
        .order_by(own.position)
        .limit(limit)
    )
    if states:
        wanted = wanted.where(own.state.in_([state.value for state in states]))
    async with book.reading() as connection:
        return tuple(_item(row) for row in await connection.execute(wanted))


def _item(row: Row[*tuple[Any, ...]]) -> Item:
    return Item(
        row.position,
        row.id or "",
        row.queue,
        ItemState(row.state),
        row.says,
        row.sent_at,
        row.ended_at,
    )
