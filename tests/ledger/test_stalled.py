"""A runner that slept too long changes nothing; a job of a million letters blocks nobody for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select

from service.core.replay import BY_AN_OPERATOR, GiveBack, Progress, Terms, next_step
from service.core.states import ItemState, ReplayState
from service.ledger import claims, stages
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.claims import claim, in_doubt, mark_sent
from service.ledger.filters import Filter
from service.ledger.replay_pages import find, items
from service.ledger.replays import Draft, Replay, open_replay
from service.ledger.running import lease, progress
from service.ledger.schema import upgrade
from service.ledger.tables import LETTERS, REPLAY_TARGETS
from tests.kit.letters import THEN, after, park, results

TERMS = Terms(rate=50, canary=1, stop_percent=10, watch=timedelta(seconds=30))
DRAFT = Draft("0" * 15 + "1", "anna", Filter(), {}, TERMS, b"digest")
PENDING, CLAIMED, SKIPPED, STOPPED = (
    ItemState.PENDING,
    ItemState.CLAIMED,
    ItemState.SKIPPED,
    ItemState.STOPPED,
)


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    """A migrated ledger of either kind."""
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


async def opened(book: Book) -> str:
    """The job, leased by `me` for three seconds, and begun."""
    job = await open_replay(book, DRAFT, THEN)
    assert isinstance(job, Replay)
    await lease(book, "me", THEN, after(3))
    assert await stages.begin(book, job.id, ReplayState.RUNNING, THEN) == stages.Begun()
    return job.id


async def targets(book: Book) -> list[str]:
    """The queues that somebody sends to."""
    async with book.reading() as connection:
        return list((await connection.scalars(select(REPLAY_TARGETS.c.queue))).all())


async def test_a_stalled_claim_takes_nothing_from_the_next_runner(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 3)
    job = await opened(book)
    take, stalled, go_on = claims._take, asyncio.Event(), asyncio.Event()

    async def slow(connection: Any, *arguments: Any) -> Any:
        if not stalled.is_set():
            stalled.set()
            await go_on.wait()
        return await take(connection, *arguments)

    async def next_runner() -> tuple[int, ...]:
        await lease(book, "other", after(4), after(9))
        return tuple(c.position for c in await claim(book, job, "other", 9, after(4)))

    monkeypatch.setattr(claims, "_take", slow)
    first = asyncio.ensure_future(claim(book, job, "me", 2, THEN))
    await stalled.wait()
    second = asyncio.ensure_future(next_runner())
    await asyncio.wait([second], timeout=0.5)
    go_on.set()
    assert [c.position for c in await first] == [1, 2]
    assert await second == (3,)
    assert await results(book, job) == [CLAIMED] * 3


async def test_whoever_has_no_lease_finds_nothing_in_doubt(book: Book) -> None:
    await park(book, 2)
    job = await opened(book)
    await claim(book, job, "me", 1, THEN)
    await lease(book, "other", after(4), after(9))
    assert await in_doubt(book, job, "me", 9, after(4)) == ()
    assert len(await in_doubt(book, job, "other", 9, after(4))) == 1


async def test_a_letter_in_doubt_that_was_forgotten_is_skipped(book: Book) -> None:
    await park(book, 2)
    job = await opened(book)
    await claim(book, job, "me", 2, THEN)
    async with book.writing() as connection:
        await connection.execute(delete(LETTERS).where(LETTERS.c.letter == "letter-1"))
    assert [c.letter for c in await in_doubt(book, job, "me", 9, THEN)] == ["letter-2"]
    assert await results(book, job) == [SKIPPED, CLAIMED]
    (gone,) = await items(book, job, (SKIPPED,), 9)
    assert gone.says == "it is not in the ledger any more"


async def test_a_job_that_has_ended_stays_ended(book: Book) -> None:
    await park(book, 2)
    job = await opened(book)
    await stages.finish(book, job, ReplayState.FINISHED, THEN)
    await stages.begin(book, job, ReplayState.RUNNING, after(1))
    await stages.ramp(book, job, after(1))
    assert await stages.stop(book, job, BY_AN_OPERATOR, after(1)) == 0
    await stages.finish(book, job, ReplayState.STOPPED, after(1))
    found = await find(book, job)
    assert isinstance(found, Replay)
    assert (found.state, found.ended_at, found.ramped_at) == (ReplayState.FINISHED, THEN, None)
    assert await targets(book) == []


async def test_a_stop_frees_the_queues_before_it_goes_through_the_letters(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 7)
    job = await opened(book)
    await claim(book, job, "me", 1, THEN)
    monkeypatch.setattr(stages, "CHUNK", 2)
    give_back = stages.give_back

    async def dies(*_: object) -> None:
        raise LedgerAway("away")

    monkeypatch.setattr(stages, "give_back", dies)
    with pytest.raises(LedgerAway):
        await stages.stop(book, job, BY_AN_OPERATOR, THEN)
    assert await targets(book) == []
    assert await results(book, job) == [STOPPED, *[PENDING] * 6]
    known = await progress(book, job, "me")
    assert known is not None
    assert next_step(known[0].state, known[0].wanted, TERMS, known[1]) == GiveBack()
    await give_back(book, job, THEN)
    assert await results(book, job) == [STOPPED] * 7


async def test_a_large_selection_is_frozen_in_chunks(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ledger.replays.CHUNK", 3)
    for count, first in ((6, 1), (1, 7)):  # whole chunks, and one that is not
        await park(book, count, first)
        job = await open_replay(book, replace(DRAFT, id=f"{count:016}"), THEN)
        assert isinstance(job, Replay)
        frozen = await items(book, job.id, (), 99)
        assert job.total == len(frozen) == first + count - 1
        assert [item.position for item in frozen] == list(range(1, first + count))


async def test_letters_past_a_queue_that_refuses_are_counted(book: Book) -> None:
    await park(book, 3, origin_queue="full")
    await park(book, 4, 4)
    job = await opened(book)
    taken = await claim(book, job, "me", 3, THEN, ("full",))
    assert [c.position for c in taken] == [4, 5, 6]
    await mark_sent(book, job, [4, 5], THEN)
    known = await progress(book, job, "me")
    assert known is not None
    assert known[1] == Progress(4, in_doubt=1, sent=2, watched=1)
    assert await in_doubt(book, job, "me", 9, THEN, ("orders",)) == ()


async def test_a_job_that_waits_asks_for_the_queue_alone(book: Book) -> None:
    await park(book, 2)
    job = await opened(book)
    other = await open_replay(book, replace(DRAFT, id="2" * 16), THEN)
    assert isinstance(other, Replay)
    busy = await stages.begin(book, other.id, ReplayState.RUNNING, THEN)
    assert isinstance(busy, stages.Busy)
    assert await stages.is_still(book, busy)
    await stages.rest(book, job, ReplayState.PAUSED)
    assert not await stages.is_still(book, busy)
