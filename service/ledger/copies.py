"""Letters out of the ledger and into it again, byte for byte: what export and import carry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import case, select

from service.core.states import LetterState
from service.ledger.again import again
from service.ledger.audit import Deed, write
from service.ledger.book import Book
from service.ledger.filters import Filter
from service.ledger.moment import in_utc
from service.ledger.tables import BURIALS, CAUSE_HOURS, CAUSES, LETTERS
from service.ledger.walks import cut, floor_of, way

BATCH = 500
HEAVY = 4 * 1024 * 1024  # bytes of bodies held at once, but for a single larger one

# What is a row's own here and means nothing in another ledger.
LOCAL = frozenset({"number", "replay", "edited_from"})
KEPT = tuple(column.name for column in LETTERS.c if column.name not in LOCAL)
BURIED = tuple(column.name for column in BURIALS.c if column.name not in {"letter", "replay"})
CAUSE = ("id", "version", "title", "error_type", "place")


@dataclass(frozen=True, slots=True)
class Copy:
    """A letter as it leaves and comes: its row, its earlier burials, its cause."""

    letter: Mapping[str, Any]
    burials: tuple[Mapping[str, Any], ...]
    cause: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """How many letters of a batch were new; the others were here already and are unchanged."""

    new: int
    known: int


async def copies(book: Book, wanted: Filter) -> AsyncIterator[Copy]:
    """Every letter of a filter, newest first, in short transactions and little memory."""
    before: int | None = None
    while True:
        async with book.reading() as connection:
            floor = (
                None if way(wanted).is_short else await connection.scalar(floor_of(wanted, before))
            )
            rows = (
                await connection.execute(cut(wanted, ("number", "size"), BATCH, before, floor))
            ).all()
        for numbers in _loads(rows):
            for copy in await _read(book, numbers):
                yield copy
        before = rows[-1].number if len(rows) == BATCH else floor
        if before is None:
            return


async def take(book: Book, batch: Sequence[Copy], deed: Deed, now: datetime) -> Taken:
    """File copies that are not here yet; a letter that is here stays as it is."""
    unique = {copy.letter["id"]: copy for copy in batch}

    async def verb() -> Taken:
        async with book.writing() as connection:
            rows = [_row(copy, now) for copy in unique.values()]
            insert = book.insert(LETTERS).on_conflict_do_nothing(index_elements=["id"])
            filed = insert.returning(LETTERS.c.number, LETTERS.c.id)
            found = (await connection.execute(filed.values(rows))).all()
            numbers = {row.id: row.number for row in found}
            new = [unique[id_] for id_ in numbers]
            if burials := list(_burials(new, numbers)):
                await connection.execute(BURIALS.insert(), burials)
            if new:
                for step in _causes(book, new, now):
                    await connection.execute(step)
                await write(connection, replace(deed, how_many=len(new)), now)
        return Taken(len(new), len(batch) - len(new))

    return await again(verb) if unique else Taken(0, 0)


def _loads(rows: Sequence[Any]) -> Iterator[list[int]]:
    """Numbers, as many at a time as their bodies allow."""
    load: list[int] = []
    weight = 0
    for row in rows:
        if load and weight + row.size > HEAVY:
            yield load
            load, weight = [], 0
        load.append(row.number)
        weight += row.size
    if load:
        yield load


async def _read(book: Book, numbers: list[int]) -> list[Copy]:
    letters = select(LETTERS).where(LETTERS.c.number.in_(numbers)).order_by(LETTERS.c.number.desc())
    buried = select(BURIALS).where(BURIALS.c.letter.in_(numbers)).order_by(BURIALS.c.burial)
    async with book.reading() as connection:
        rows = (await connection.execute(letters)).mappings().all()
        earlier = (await connection.execute(buried)).mappings().all()
        known = select(CAUSES).where(CAUSES.c.id.in_({row["cause"] for row in rows}))
        causes = {row["id"]: row for row in (await connection.execute(known)).mappings()}
    return [
        Copy(
            {name: row[name] for name in KEPT},
            tuple({k: b[k] for k in BURIED} for b in earlier if b["letter"] == row["number"]),
            {name: causes[row["cause"]][name] for name in CAUSE} if row["cause"] in causes else {},
        )
        for row in rows
    ]


def _row(copy: Copy, now: datetime) -> dict[str, Any]:
    """Nobody here watches what another ledger sent: it is parked, for people to decide."""
    state = copy.letter["state"]
    parked = LetterState.PARKED.value if state == LetterState.SENT else state
    return {**copy.letter, "state": parked, "changed_at": now}


def _burials(new: Sequence[Copy], numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for copy in new:
        for burial in copy.burials:
            yield {**burial, "letter": numbers[copy.letter["id"]], "replay": None}


def _causes(book: Book, new: Sequence[Copy], now: datetime) -> Iterator[Any]:
    """The causes of what came, each made where it is missing, with what it has now; in one order."""
    for id_ in sorted({copy.letter["cause"] for copy in new}):
        ours = [copy for copy in new if copy.letter["cause"] == id_]
        moments = [in_utc(copy.letter["buried_at"]) for copy in ours]
        told = ours[0].cause or {
            "id": id_,
            "version": 0,
            "title": "",
            "error_type": "",
            "place": "",
        }
        row = book.insert(CAUSES).values(
            **told,
            state="new",
            first_seen=min(moments),
            last_seen=max(moments),
            changed_at=now,
            burials=len(ours),
        )
        yield row.on_conflict_do_update(
            index_elements=["id"],
            set_={
                "burials": CAUSES.c.burials + row.excluded.burials,
                "first_seen": _either(CAUSES.c.first_seen, row.excluded.first_seen, earlier=True),
                "last_seen": _either(CAUSES.c.last_seen, row.excluded.last_seen, earlier=False),
            },
        )
        yield from _hours(book, id_, moments)


def _hours(book: Book, cause: str, moments: Sequence[datetime]) -> Iterator[Any]:
    hours = [moment.replace(minute=0, second=0, microsecond=0) for moment in moments]
    for hour in sorted(set(hours)):
        row = book.insert(CAUSE_HOURS).values(cause=cause, hour=hour, burials=hours.count(hour))
        burials = CAUSE_HOURS.c.burials + row.excluded.burials
        yield row.on_conflict_do_update(index_elements=["cause", "hour"], set_={"burials": burials})


def _either(one: Any, other: Any, *, earlier: bool) -> Any:
    """The earlier or the later moment; the databases have other words for it."""
    return case((one < other, one if earlier else other), else_=other if earlier else one)
