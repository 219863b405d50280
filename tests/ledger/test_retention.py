"""What needs nobody any more is forgotten after its time; what is parked is counted, and stays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import update

from service.core.replay import Terms
from service.core.states import LetterState
from service.ledger import retention
from service.ledger.book import Book
from service.ledger.filing import file
from service.ledger.filters import Filter
from service.ledger.parked import parked
from service.ledger.replays import Draft, Replay, open_replay
from service.ledger.schema import upgrade
from service.ledger.tables import (
    BURIALS,
    CAUSE_HOURS,
    CAUSES,
    LETTER_COUNTS,
    LETTERS,
    REPLAY_ITEMS,
    REPLAYS,
)
from service.office import sweeper
from service.office.sweeper import Sweeper
from tests.ledger.burials import NOW, burial, rows
from tests.servers.waiting import eventually

DAY = timedelta(days=1)
TERMS = Terms(rate=50, canary=1, stop_percent=10, watch=timedelta(seconds=30))


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


async def test_letters_go_when_their_time_is_over(book: Book) -> None:
    states = dict(zip("abcdef", LetterState, strict=True))
    await file(book, [burial(name) for name in states], NOW)
    await file(book, [burial("d", attempt=2)], NOW)
    async with book.writing() as connection:
        for name, state in states.items():
            step = update(LETTERS).where(LETTERS.c.letter == name)
            await connection.execute(step.values(state=state.value, changed_at=NOW))
    for after, gone in (
        (timedelta(hours=1), set()),
        (8 * DAY, {LetterState.DISCARDED}),
        (31 * DAY, {LetterState.DISCARDED, LetterState.HANDLED, LetterState.QUIET}),
    ):
        now = NOW + after
        await Sweeper(book, 30 * DAY, 7 * DAY, clock=partial(lambda moment: moment, now)).sweep()
        left = {row["state"] for row in await rows(book, LETTERS)}
        assert left == set(LetterState) - gone
    assert await rows(book, BURIALS) == [], "a forgotten letter's older burials go with it"
    assert sum(row["letters"] for row in await rows(book, LETTER_COUNTS)) == 3
    assert len(await rows(book, CAUSE_HOURS)) == 1
    await Sweeper(book, DAY, DAY, clock=lambda: NOW + 91 * DAY).sweep()
    assert await rows(book, CAUSE_HOURS) == []


async def test_causes_without_letters_go_unless_people_spoke_of_them(book: Book) -> None:
    errors = ("untouched", "muted", "noted", "parked")
    await file(book, [burial(error, error=error) for error in errors], NOW)
    async with book.writing() as connection:
        left = update(LETTERS).where(LETTERS.c.letter != "parked")
        await connection.execute(left.values(state="handled", changed_at=NOW))
        for error, said in (("muted", {"state": "muted"}), ("noted", {"note": "see the wiki"})):
            step = update(CAUSES).where(CAUSES.c.title == f"Boom: {error}")
            await connection.execute(step.values(**said))
    for after, causes in ((29, set(errors)), (31, {"muted", "noted", "parked"})):
        now = NOW + after * DAY
        await Sweeper(book, 30 * DAY, DAY, clock=partial(lambda moment: moment, now)).sweep()
        assert {row["title"].removeprefix("Boom: ") for row in await rows(book, CAUSES)} == causes
        assert len(await rows(book, CAUSE_HOURS)) == len(causes)
    assert [row["letters"] for row in await rows(book, LETTER_COUNTS)] == [1]
    await file(book, [burial("again", error="untouched")], NOW + 32 * DAY)
    assert len(await rows(book, CAUSES)) == 4


async def test_jobs_go_when_they_ended_long_ago(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    monkeypatch.setattr(sweeper, "AT_ONCE", 2)
    await file(book, [burial(name) for name in "abc"], NOW)
    jobs = []
    for number, ended in enumerate((NOW, NOW + DAY, None)):
        draft = Draft(f"{number:016}", "anna", Filter(), {}, TERMS, b"digest")
        job = await open_replay(book, draft, NOW)
        assert isinstance(job, Replay)
        jobs.append(job.id)
        async with book.writing() as connection:
            step = update(REPLAYS).where(REPLAYS.c.id == job.id)
            await connection.execute(step.values(ended_at=ended))
            # Free its letters for the next one.
            await connection.execute(update(LETTERS).values(state="parked", replay=None))
    for after, left in ((29, jobs), (30.5, jobs[1:]), (99, jobs[2:])):
        now = NOW + after * DAY
        await Sweeper(book, 30 * DAY, DAY, clock=partial(lambda moment: moment, now)).sweep()
        assert {row["id"] for row in await rows(book, REPLAYS)} == set(left)
        results = Counter(row["replay"] for row in await rows(book, REPLAY_ITEMS))
        assert results == dict.fromkeys(left, 3), "all of a job or nothing"


async def test_the_sweeper_outlives_any_fault(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [RuntimeError("a bug")]

    def clock() -> datetime:
        if faults:
            raise faults.pop()
        return NOW + 31 * DAY

    monkeypatch.setattr(sweeper, "LOOK_SECONDS", 0.01)
    await file(book, [burial(discarded=True)], NOW)
    running = asyncio.create_task(Sweeper(book, DAY, DAY, clock=clock).run())
    try:
        await eventually(lambda: is_empty(book), within=5)
    finally:
        running.cancel()
        await asyncio.wait([running])


async def is_empty(book: Book) -> bool:
    return await rows(book, LETTERS) == []


async def test_what_needs_somebody_is_counted_by_flow(book: Book) -> None:
    assert (await parked(book)).oldest is None
    await file(book, [burial("a")], NOW - DAY)
    await file(book, [burial("b"), burial("c", flow="adopted"), burial("d", discarded=True)], NOW)
    found = await parked(book)
    assert found.by_flow == {"dlq_processor": 2, "adopted": 1}
    assert found.oldest == NOW - DAY
