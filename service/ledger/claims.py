"""Claim before send: the letters of a replay, taken, sent, unroutable or quiet. One transaction each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, case, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import OPEN, ItemState, LetterState, Wanted
from service.ledger.again import again
from service.ledger.audit import clean
from service.ledger.book import Book
from service.ledger.tables import LETTERS, REPLAY_ITEMS, REPLAYS

MOST_AT_ONCE = 500
GONE = "somebody discarded it, or another replay took it"
FORGOTTEN = "it is not in the ledger any more"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A letter that is ours to send: its place in the job, its id and bytes, and whereto."""

    position: int
    number: int
    id: str
    letter: str
    queue: str
    body: bytes
    headers: bytes
    properties: bytes


async def claim(
    book: Book, job: str, runner: str, most: int, now: datetime, but_not: Collection[str] = ()
) -> tuple[Claimed, ...]:
    """Take the next letters, but not those to these queues: whoever takes the row out of its open state
    may send it, and nobody else.

    A row counts as sent from here on, so that its return is recognised however early it comes. A
    letter that is not open any more is skipped. The job is nobody else's until all this is written.
    """
    pending = _items(job, ItemState.PENDING, but_not).limit(most)

    async def verb() -> tuple[Claimed, ...]:
        async with book.writing() as connection:
            if not await connection.scalar(_may_send(job, runner, now).with_for_update()):
                return ()
            items = (await connection.execute(pending)).all()
            taken = await _take(connection, job, [item.letter for item in items], now)
            await _set(connection, job, [i.position for i in items if i.letter in taken], "claimed")
            missed = [item.position for item in items if item.letter not in taken]
            await _set(connection, job, missed, "skipped", GONE, now)
        return tuple(_claimed(item, taken[item.letter]) for item in items if item.letter in taken)

    return await again(verb)


async def in_doubt(
    book: Book, job: str, runner: str, most: int, now: datetime, but_not: Collection[str] = ()
) -> tuple[Claimed, ...]:
    """Letters that were claimed and never marked: they may have been sent, and are sent again.

    Those whose row is gone can never be: they are skipped.
    """
    wanted = _items(job, ItemState.CLAIMED, but_not).limit(most)
    async with book.reading() as connection:
        if not await connection.scalar(_may_send(job, runner, now)):
            return ()
        items = (await connection.execute(wanted)).all()
        numbers = [item.letter for item in items]
        rows = await connection.execute(_bytes_of().where(LETTERS.c.number.in_(numbers)))
        letters = {row.number: row for row in rows}
    if gone := [item.position for item in items if item.letter not in letters]:
        async with book.writing() as connection:
            await _set(connection, job, gone, "skipped", FORGOTTEN, now, was=ItemState.CLAIMED)
    return tuple(_claimed(item, letters[item.letter]) for item in items if item.letter in letters)


async def mark_sent(book: Book, job: str, positions: Sequence[int], now: datetime) -> None:
    """RabbitMQ has confirmed these; those that are back or handled already stay so."""
    own = REPLAY_ITEMS.c
    step = update(REPLAY_ITEMS).where(
        own.replay == job,
        own.position.in_(positions),
        own.state == ItemState.CLAIMED.value,
    )

    async def verb() -> None:
        async with book.writing() as connection:
            await connection.execute(step.values(state=ItemState.SENT.value, sent_at=now))

    await again(verb)


async def mark_unroutable(book: Book, job: str, reasons: Mapping[int, str], now: datetime) -> None:
    """No queue takes these: they are parked again, as they were before."""
    own, positions = REPLAY_ITEMS.c, list(reasons)
    mine = and_(own.replay == job, own.position.in_(positions))

    async def verb() -> None:
        async with book.writing() as connection:
            claimed = own.state == ItemState.CLAIMED.value
            await reopen(connection, job, select(own.letter).where(mine, claimed), now)
            says = case({at: clean(why) for at, why in reasons.items()}, value=own.position)
            unroutable = {"state": ItemState.UNROUTABLE.value, "says": says, "ended_at": now}
            await connection.execute(update(REPLAY_ITEMS).where(mine, claimed).values(**unroutable))

    await again(verb)


async def close_windows(book: Book, job: str, before: datetime, now: datetime) -> int:
    """Letters sent before this moment and not seen since are quiet; how many this time.

    Rows first, then items, as whoever files a burial does: two verbs never wait in a circle.
    """
    own = REPLAY_ITEMS.c
    over = (
        select(own.position, own.letter)
        .where(own.replay == job, own.state == ItemState.SENT.value, own.sent_at <= before)
        .order_by(own.position)
        .limit(MOST_AT_ONCE)
    )
    async with book.reading() as connection:
        items = (await connection.execute(over)).all()
    if not items:
        return 0
    letters = _held_by(job, [item.letter for item in items])
    positions = own.position.in_([item.position for item in items])
    sent = and_(own.replay == job, positions, own.state == ItemState.SENT.value)

    async def verb() -> int:
        async with book.writing() as connection:
            quiet = LetterState.QUIET.value
            await connection.execute(
                update(LETTERS).where(letters).values(state=quiet, changed_at=now)
            )
            noted = update(REPLAY_ITEMS).where(sent).values(state=quiet, ended_at=now)
            return (await connection.execute(noted)).rowcount

    return await again(verb)


async def reopen(
    connection: AsyncConnection, job: str, letters: Select[tuple[int]], now: datetime
) -> None:
    """Give claimed letters back to people, as if this job had never taken them."""
    before = case((LETTERS.c.replays > 1, LetterState.BACK.value), else_=LetterState.PARKED.value)
    step = update(LETTERS).where(
        LETTERS.c.number.in_(letters),
        LETTERS.c.state == LetterState.SENT.value,
        LETTERS.c.replay == job,
    )
    await connection.execute(
        step.values(state=before, replays=LETTERS.c.replays - 1, changed_at=now)
    )


async def _take(
    connection: AsyncConnection, job: str, numbers: Sequence[int], now: datetime
) -> dict[int, Row[*tuple[Any, ...]]]:
    step = (
        update(LETTERS)
        .where(LETTERS.c.number.in_(numbers), LETTERS.c.state.in_([state.value for state in OPEN]))
        .values(
            state=LetterState.SENT.value,
            replay=job,
            replays=LETTERS.c.replays + 1,
            changed_at=now,
        )
        .returning(*_bytes_of().selected_columns)
    )
    return {row.number: row for row in await connection.execute(step)}


def _bytes_of() -> Select[tuple[int, str, str, bytes, bytes, bytes]]:
    own = LETTERS.c
    return select(own.number, own.id, own.letter, own.body, own.headers, own.properties)


async def _set(
    connection: AsyncConnection,
    job: str,
    positions: Sequence[int],
    state: str,
    says: str = "",
    ended_at: datetime | None = None,
    *,
    was: ItemState = ItemState.PENDING,
) -> None:
    if positions:
        mine = REPLAY_ITEMS.c.replay == job, REPLAY_ITEMS.c.position.in_(positions)
        step = update(REPLAY_ITEMS).where(*mine, REPLAY_ITEMS.c.state == was.value)
        await connection.execute(step.values(state=state, says=says, ended_at=ended_at))


def _items(job: str, state: ItemState, but_not: Collection[str]) -> Select[tuple[int, int, str]]:
    own = REPLAY_ITEMS.c
    items = select(own.position, own.letter, own.queue).order_by(own.position)
    items = items.where(own.replay == job, own.state == state.value)
    return items.where(own.queue.not_in(but_not)) if but_not else items


def _may_send(job: str, runner: str, now: datetime) -> Select[tuple[int]]:
    """A runner that slept too long, or a job that an operator stopped, takes nothing more."""
    own = REPLAYS.c
    ours = and_(own.id == job, own.runner == runner, own.runner_until > now)
    return select(own.number).where(ours, own.wanted == Wanted.RUN.value)


def _held_by(job: str, numbers: Sequence[int]) -> ColumnElement[bool]:
    own = LETTERS.c
    return and_(own.number.in_(numbers), own.state == LetterState.SENT.value, own.replay == job)


def _claimed(item: Row[*tuple[Any, ...]], row: Row[*tuple[Any, ...]]) -> Claimed:
    body, headers, properties = map(bytes, (row.body, row.headers, row.properties))
    return Claimed(
        item.position, row.number, row.id, row.letter, item.queue, body, headers, properties
    )
