"""Replays: opened with a frozen selection, found, listed, and what an operator wants of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Insert, Row, and_, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.replay import Terms
from service.core.states import OPEN, Attempts, ItemState, ReplayState, Wanted
from service.ledger.again import again
from service.ledger.audit import Deed, clean, write
from service.ledger.book import Book
from service.ledger.discards import CHUNK
from service.ledger.filters import Filter, where
from service.ledger.tables import LETTERS, REPLAY_ITEMS, REPLAYS


@dataclass(frozen=True, slots=True)
class Draft:
    """A replay as somebody asks for it."""

    id: str
    who: str
    selection: Filter
    asked: Mapping[str, object]
    """The filter, in the words it was asked for."""
    terms: Terms
    digest: bytes
    """Of the whole request: the same again is the same job."""
    target: str = ""
    """One queue for all; "" is where each letter died."""
    attempts: Attempts = Attempts.CONTINUED
    why: str = ""
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """A job as it stands."""

    number: int
    id: str
    state: ReplayState
    says: str
    wanted: Wanted
    who: str
    why: str
    asked: Mapping[str, object]
    target: str
    attempts: Attempts
    terms: Terms
    total: int
    created_at: datetime
    started_at: datetime | None = None
    ramped_at: datetime | None = None
    ended_at: datetime | None = None
    figures: Mapping[ItemState, int] = field(default_factory=dict)
    """How many letters there are of each result; filled where one job is asked for."""


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The idempotency key belongs to another request."""

    by: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """No letter is left to send."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no such replay."""


@dataclass(frozen=True, slots=True)
class Over:
    """It is over: nothing can be wanted of it any more."""

    state: ReplayState


class _NothingChosen(Exception):
    """Undoes the job that was about to be written."""


def chosen(wanted: Filter, target: str) -> ColumnElement[bool]:
    """The letters that a replay of this filter may send: open ones, whose queue is known."""
    is_open = and_(where(wanted), LETTERS.c.state.in_([state.value for state in OPEN]))
    return is_open if target else and_(is_open, LETTERS.c.origin_queue != "")


async def open_replay(book: Book, draft: Draft, now: datetime) -> Replay | KeyTaken | Nothing:
    """Freeze the selection and write the job, or find the one that the same request made before.

    Two requests with one key race for the unique column: the later one waits for the earlier one's
    commit, inserts nothing, and finds the row that is there.
    """

    async def verb() -> Replay | KeyTaken | Nothing:
        async with book.writing() as connection:
            once = book.insert(REPLAYS).values(**_row(draft, now))
            once = once.on_conflict_do_nothing(index_elements=[REPLAYS.c.idempotency_key])
            if (await connection.execute(once)).rowcount == 1:
                total = await _freeze(connection, draft)
                await write(connection, _deed(draft, total), now)
                return await _read(connection, draft.id)
            return await _earlier(connection, draft)

    try:
        return await again(verb)
    except _NothingChosen:
        return Nothing()


async def want(
    book: Book, id_: str, wanted: Wanted, deed: Deed, now: datetime
) -> Replay | Over | Unknown:
    """Note what an operator wants; whoever runs the job sees it with its next step."""
    step = update(REPLAYS).where(REPLAYS.c.id == id_, _is_running()).values(wanted=wanted.value)

    async def verb() -> Replay | Over | Unknown:
        async with book.writing() as connection:
            if (await connection.execute(step)).rowcount == 1:
                await write(connection, deed, now)
                return await _read(connection, id_)
            found = await connection.scalar(select(REPLAYS.c.state).where(REPLAYS.c.id == id_))
            return Unknown() if found is None else Over(ReplayState(found))

    return await again(verb)


def replay_of(row: Row[*tuple[Any, ...]], figures: Mapping[ItemState, int] | None = None) -> Replay:
    """A row of the table as a value."""
    watch = timedelta(seconds=row.watch_seconds)
    return Replay(
        row.number,
        row.id,
        ReplayState(row.state),
        row.says,
        Wanted(row.wanted),
        row.who,
        row.why,
        row.selection,
        row.target,
        Attempts(row.attempts),
        Terms(row.rate, row.canary, row.stop_percent, watch),
        row.total,
        row.created_at,
        row.started_at,
        row.ramped_at,
        row.ended_at,
        figures or {},
    )


async def _freeze(connection: AsyncConnection, draft: Draft) -> int:
    """A chunk at a time, up to the newest letter there is: what comes meanwhile came too late."""
    own, total, last = REPLAY_ITEMS.c, 0, 0
    newest = await connection.scalar(select(func.max(LETTERS.c.number))) or 0
    while last < newest:
        chunk = _chunk(draft, total, last, newest)
        frozen = (await connection.execute(chunk)).rowcount
        total += frozen
        if frozen < CHUNK:
            break
        latest = select(own.letter).where(own.replay == draft.id, own.position == total)
        last = await connection.scalar(latest) or newest
    if total == 0:
        raise _NothingChosen
    step = update(REPLAYS).where(REPLAYS.c.id == draft.id).values(total=total)
    await connection.execute(step)
    return total


def _chunk(draft: Draft, total: int, last: int, newest: int) -> Insert:
    """The next letters of the selection as items, after so many that are frozen already."""
    whereto = literal(draft.target) if draft.target else LETTERS.c.origin_queue
    number = LETTERS.c.number
    wanted = chosen(draft.selection, draft.target)
    selected = select(
        literal(draft.id),
        func.row_number().over(order_by=number) + total,
        number,
        whereto,
        literal(ItemState.PENDING.value),
    ).where(wanted, number > last, number <= newest)
    columns = ["replay", "position", "letter", "queue", "state"]
    return REPLAY_ITEMS.insert().from_select(columns, selected.order_by(number).limit(CHUNK))


async def _earlier(connection: AsyncConnection, draft: Draft) -> Replay | KeyTaken:
    same = select(REPLAYS).where(REPLAYS.c.idempotency_key == draft.key)
    row = (await connection.execute(same)).one()
    return replay_of(row) if bytes(row.request_digest) == draft.digest else KeyTaken(row.id)


async def _read(connection: AsyncConnection, id_: str) -> Replay:
    row = (await connection.execute(select(REPLAYS).where(REPLAYS.c.id == id_))).one()
    return replay_of(row, await figures_of(connection, id_))


async def figures_of(connection: AsyncConnection, id_: str) -> dict[ItemState, int]:
    """How many letters of a job there are of each result."""
    own = REPLAY_ITEMS.c
    counted = select(own.state, func.count()).where(own.replay == id_).group_by(own.state)
    return {ItemState(state): count for state, count in await connection.execute(counted)}


def _is_running() -> ColumnElement[bool]:
    over = (ReplayState.FINISHED.value, ReplayState.STOPPED.value)
    return REPLAYS.c.state.not_in(over)


def _row(draft: Draft, now: datetime) -> dict[str, object]:
    terms = draft.terms
    return {
        "id": draft.id,
        "state": ReplayState.WAITING.value,
        "wanted": Wanted.RUN.value,
        "who": clean(draft.who),
        "why": clean(draft.why),
        "selection": dict(draft.asked),
        "target": draft.target,
        "attempts": draft.attempts.value,
        "rate": terms.rate,
        "canary": terms.canary,
        "stop_percent": terms.stop_percent,
        "watch_seconds": terms.watch.total_seconds(),
        "total": 0,
        "idempotency_key": draft.key,
        "request_digest": draft.digest,
        "created_at": now,
    }


def _deed(draft: Draft, total: int) -> Deed:
    details = {"filter": dict(draft.asked), "target": draft.target, "rate": draft.terms.rate}
    return Deed(draft.who, "replay.start", f"replay:{draft.id}", total, draft.why, details)
