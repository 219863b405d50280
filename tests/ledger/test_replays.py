"""The ledger's side of a replay: frozen, leased, claimed once, noted in any order, stopped, finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from service.core.replay import Progress, Terms
from service.core.replayed import Replayed
from service.core.states import ItemState, LetterState, ReplayState, Wanted
from service.ledger import stages
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.burial import Sent
from service.ledger.claims import (
    Claimed,
    claim,
    close_windows,
    in_doubt,
    mark_sent,
    mark_unroutable,
)
from service.ledger.filters import Filter
from service.ledger.replay_pages import find, items, newest
from service.ledger.replays import (
    Draft,
    KeyTaken,
    Nothing,
    Over,
    Replay,
    Unknown,
    open_replay,
    want,
)
from service.ledger.results import Back, note_back, note_handled
from service.ledger.running import lease, let_go, progress
from service.ledger.schema import upgrade
from service.ledger.tables import AUDIT, LETTERS, REPLAY_TARGETS
from tests.kit.letters import THEN, after, park, results, row, states

TERMS = Terms(rate=50, canary=1, stop_percent=10, watch=timedelta(seconds=30))
DRAFT = Draft("0" * 15 + "1", "anna", Filter(), {}, TERMS, b"digest")
PENDING, CLAIMED, SENT, BACK = (
    ItemState.PENDING,
    ItemState.CLAIMED,
    ItemState.SENT,
    ItemState.BACK,
)
HANDLED, QUIET, STOPPED = ItemState.HANDLED, ItemState.QUIET, ItemState.STOPPED


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    """A migrated ledger of either kind."""
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


async def opened(book: Book, draft: Draft = DRAFT) -> Replay:
    """The job of this draft, leased by `me` and begun."""
    job = await open_replay(book, draft, THEN)
    assert isinstance(job, Replay)
    await lease(book, "me", THEN, after(60))
    assert await stages.begin(book, job.id, ReplayState.RUNNING, THEN) == stages.Begun()
    return job


async def known(book: Book, job: Replay) -> Progress:
    """How far it has come."""
    found = await progress(book, job.id, "me")
    assert found is not None
    return found[1]


async def come_back(book: Book, letter: Claimed, sent: Sent | None = None) -> int:
    """What filing does: the row first, then the item."""
    own = LETTERS.c
    async with book.writing() as connection:
        row = (
            await connection.execute(select(own.replay).where(own.number == letter.number))
        ).one()
        dead = update(LETTERS).where(own.number == letter.number)
        await connection.execute(dead.values(state=LetterState.BACK.value))
        back = Back(letter.number, row.replay, sent, "failed 4 times")
        return await note_back(connection, [back], THEN)


async def test_the_selection_is_frozen_and_audited(book: Book) -> None:
    await park(book, 3)
    await park(book, 1, 4, state="discarded")
    await park(book, 1, 5, origin_queue="")
    await park(book, 1, 6, state="back", replays=1, origin_queue="billing")
    job = await open_replay(book, replace(DRAFT, why="fixed"), THEN)
    assert isinstance(job, Replay)
    assert (job.state, job.total, job.figures) == (ReplayState.WAITING, 4, {PENDING: 4})
    await park(book, 9, 10)  # they came too late
    frozen = await items(book, job.id, (), 10)
    assert [item.queue for item in frozen] == ["orders"] * 3 + ["billing"]
    async with book.reading() as connection:
        (line,) = (await connection.execute(select(AUDIT))).all()
    assert (line.who, line.action, line.how_many, line.why) == ("anna", "replay.start", 4, "fixed")


async def test_a_named_target_takes_letters_that_nobody_knows_the_queue_of(book: Book) -> None:
    await park(book, 2, origin_queue="")
    assert await open_replay(book, DRAFT, THEN) == Nothing()
    job = await open_replay(book, replace(DRAFT, target="mended"), THEN)
    assert isinstance(job, Replay)
    assert {item.queue for item in await items(book, job.id, (), 10)} == {"mended"}


async def test_a_double_click_is_one_job(book: Book) -> None:
    await park(book, 2)
    clicks = [replace(DRAFT, id=f"{n:016}", key="k") for n in range(5)]
    jobs = await asyncio.gather(*(open_replay(book, click, THEN) for click in clicks))
    (id_,) = {job.id for job in jobs if isinstance(job, Replay)}
    other = replace(DRAFT, id="f" * 16, key="k", digest=b"another request")
    assert await open_replay(book, other, THEN) == KeyTaken(id_)
    assert len(await newest(book, (), 10)) == 1


async def test_one_runner_at_a_time(book: Book) -> None:
    await park(book, 2)
    await open_replay(book, DRAFT, THEN)
    assert len(await lease(book, "me", THEN, after(3))) == 1
    assert await lease(book, "other", after(1), after(4)) == ()
    assert len(await lease(book, "me", after(2), after(5))) == 1  # renewed
    assert len(await lease(book, "other", after(6), after(9))) == 1  # missed
    assert await progress(book, DRAFT.id, "me") is None
    assert await claim(book, DRAFT.id, "me", 5, after(6)) == ()
    await let_go(book, "other")
    assert len(await lease(book, "me", after(7), after(10))) == 1


async def test_letters_are_claimed_in_order_and_by_one_job_only(book: Book) -> None:
    await park(book, 4)
    job = await opened(book)
    first = await claim(book, job.id, "me", 2, THEN)
    assert [(c.position, c.letter, c.body) for c in first] == [
        (1, "letter-1", b"00001"),
        (2, "letter-2", b"00002"),
    ]
    rival = await opened(book, replace(DRAFT, id="2" * 16, selection=Filter(ids=()), target="x"))
    assert [c.letter for c in await claim(book, rival.id, "me", 9, THEN)] == [
        "letter-3",
        "letter-4",
    ]
    assert await claim(book, job.id, "me", 9, THEN) == ()
    assert await results(book, job.id) == [CLAIMED, CLAIMED, ItemState.SKIPPED, ItemState.SKIPPED]
    assert await known(book, job) == Progress(0, in_doubt=2)


async def test_a_letter_that_was_discarded_meanwhile_is_skipped(book: Book) -> None:
    await park(book, 2)
    job = await opened(book)
    async with book.writing() as connection:
        gone = update(LETTERS).where(LETTERS.c.letter == "letter-1")
        await connection.execute(gone.values(state="discarded"))
    assert [c.letter for c in await claim(book, job.id, "me", 2, THEN)] == ["letter-2"]
    (skipped,) = await items(book, job.id, (ItemState.SKIPPED,), 10)
    assert "discarded" in skipped.says


async def test_a_claim_that_nobody_marked_is_in_doubt_and_found_again(book: Book) -> None:
    await park(book, 3)
    job = await opened(book)
    claimed = await claim(book, job.id, "me", 2, THEN)
    await mark_sent(book, job.id, [1], THEN)
    assert await in_doubt(book, job.id, "me", 10, THEN) == claimed[1:]
    assert await known(book, job) == Progress(1, in_doubt=1, sent=1, watched=1)


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("early", [True, False])
async def test_a_letter_may_come_back_before_we_noted_that_it_was_sent(
    book: Book, early: bool, marked: bool
) -> None:
    await park(book, 1)
    job = await opened(book)
    (letter,) = await claim(book, job.id, "me", 1, THEN)
    mark = Sent(job.id, 1, letter.id) if marked else None
    if early:
        assert await come_back(book, letter, mark) == 1
        await mark_sent(book, job.id, [1], after(1))
    else:
        await mark_sent(book, job.id, [1], THEN)
        assert await come_back(book, letter, mark) == 1
    assert await results(book, job.id) == [BACK]
    assert await states(book) == {"letter-1": "back"}
    assert await known(book, job) == Progress(0, sent=1, back=1)
    assert await close_windows(book, job.id, after(99), after(99)) == 0
    (item,) = await items(book, job.id, (BACK,), 10)
    assert (item.says, item.sent_at) == ("failed 4 times", THEN)


async def test_a_late_return_is_noted_after_the_job_has_finished(book: Book) -> None:
    await park(book, 1)
    job = await opened(book)
    (letter,) = await claim(book, job.id, "me", 1, THEN)
    await mark_sent(book, job.id, [1], THEN)
    assert await close_windows(book, job.id, after(-1), after(29)) == 0
    assert await close_windows(book, job.id, after(1), after(31)) == 1
    await stages.finish(book, job.id, ReplayState.FINISHED, after(31))
    assert await states(book) == {"letter-1": "quiet"}
    await come_back(book, letter, Sent(job.id, 1, letter.id))
    found = await find(book, job.id)
    assert isinstance(found, Replay)
    assert (found.state, found.figures) == (ReplayState.FINISHED, {BACK: 1})


async def test_the_return_of_an_older_replay_is_not_the_newer_one_s(book: Book) -> None:
    await park(book, 1)
    job = await opened(book)
    (letter,) = await claim(book, job.id, "me", 1, THEN)
    await mark_sent(book, job.id, [1], THEN)
    await come_back(book, letter, Sent(job.id, 1, letter.id))
    await stages.finish(book, job.id, ReplayState.FINISHED, THEN)
    newer = await opened(book, replace(DRAFT, id="2" * 16))
    await claim(book, newer.id, "me", 1, THEN)
    await mark_sent(book, newer.id, [1], THEN)
    assert await come_back(book, letter, Sent(job.id, 1, letter.id)) == 0
    assert await results(book, newer.id) == [SENT]


async def test_receipts_are_noted_in_any_order_and_once(book: Book) -> None:
    await park(book, 4)
    job = await opened(book)
    letters = await claim(book, job.id, "me", 4, THEN)
    receipts = [Replayed(job.id, letter.position, letter.id) for letter in letters]
    assert await note_handled(book, receipts[:1], THEN) == 1  # before we noted that it was sent
    await mark_sent(book, job.id, [1, 2, 3, 4], THEN)
    await come_back(book, letters[3], Sent(job.id, 4, letters[3].id))
    assert await note_handled(book, receipts[1:2] * 2, THEN) == 1
    assert await close_windows(book, job.id, after(1), after(31)) == 1
    assert (
        await note_handled(book, receipts[2:], THEN) == 1
    )  # quiet, then heard of; back stays back
    assert await results(book, job.id) == [HANDLED, HANDLED, HANDLED, BACK]
    assert set((await states(book)).values()) == {"handled", "back"}
    assert await note_handled(book, [Replayed("9" * 16, 1, "0" * 32)], THEN) == 0


async def test_what_no_queue_takes_is_as_it_was(book: Book) -> None:
    await park(book, 1)
    await park(book, 1, 2, state="back", replays=1)
    job = await opened(book)
    await claim(book, job.id, "me", 2, THEN)
    await mark_unroutable(book, job.id, {1: "no queue takes 'orders'", 2: "nor this"}, THEN)
    assert await states(book) == {"letter-1": "parked", "letter-2": "back"}
    assert await known(book, job) == Progress(0, unroutable=2)
    assert [i.says for i in await items(book, job.id, (), 9)] == [
        "no queue takes 'orders'",
        "nor this",
    ]


async def test_one_running_job_per_queue(book: Book) -> None:
    await park(book, 2)
    await park(book, 2, 3, origin_queue="billing")
    first = await opened(book, replace(DRAFT, selection=Filter(origin_queue="billing")))
    both = await open_replay(book, replace(DRAFT, id="2" * 16), THEN)
    assert isinstance(both, Replay)
    busy = await stages.begin(book, both.id, ReplayState.RUNNING, THEN)
    assert busy == stages.Busy("billing", first.id)
    waiting = await find(book, both.id)
    assert isinstance(waiting, Replay)
    assert waiting.says == f"replay {first.id} is sending to billing"
    third = replace(DRAFT, id="3" * 16, selection=Filter(origin_queue="orders"))
    await opened(book, third)  # whoever waits holds nothing
    await stages.rest(book, first.id, ReplayState.PAUSED)
    await stages.rest(book, third.id, ReplayState.WATCHING)
    assert await stages.begin(book, both.id, ReplayState.RUNNING, THEN) == stages.Begun()
    assert (await stages.begin(book, first.id, ReplayState.RUNNING, THEN)) == stages.Busy(
        "billing", both.id
    )


async def test_stopped_letters_are_with_people_again(book: Book) -> None:
    await park(book, 4)
    job = await opened(book)
    letters = await claim(book, job.id, "me", 3, THEN)
    await mark_sent(book, job.id, [1], THEN)
    stop = Deed("anna", "replay.stop", f"replay:{job.id}")
    await want(book, job.id, Wanted.STOP, stop, THEN)
    assert await claim(book, job.id, "me", 9, THEN) == ()
    assert await stages.stop(book, job.id, "stopped by an operator", THEN) == 3
    assert await results(book, job.id) == [SENT, STOPPED, STOPPED, STOPPED]
    assert await states(book) == {
        "letter-1": "sent",
        **{f"letter-{n}": "parked" for n in (2, 3, 4)},
    }
    async with book.reading() as connection:
        assert (await connection.execute(select(REPLAY_TARGETS))).all() == []
    # One in doubt had been sent after all, and dies.
    await come_back(book, letters[1], Sent(job.id, 2, letters[1].id))
    assert (await results(book, job.id))[1] is BACK
    assert await want(book, job.id, Wanted.RUN, stop, THEN) == Over(ReplayState.STOPPED)
    assert await want(book, "f" * 16, Wanted.RUN, stop, THEN) == Unknown()
    assert len(await lease(book, "me", THEN, after(60))) == 1  # a window is still open
    await stages.finish(book, job.id, ReplayState.STOPPED, THEN)
    assert await lease(book, "me", THEN, after(60)) == ()


async def test_hostile_words_are_kept_clean(book: Book) -> None:
    await park(book, 1)
    job = await open_replay(book, replace(DRAFT, why="nul \x00 half \ud800"), THEN)
    assert isinstance(job, Replay)
    assert job.why == "nul ␀ half ?"
    await stages.say(book, job.id, "\x00")


async def test_pages_of_jobs_and_letters(book: Book) -> None:
    await park(book, 5)
    for n in range(3):
        await open_replay(book, replace(DRAFT, id=f"{n:016}"), THEN)
    page = await newest(book, (), 2)
    assert [job.id[-1] for job in page] == ["2", "1"]
    assert [job.id[-1] for job in await newest(book, (), 2, page[-1].number)] == ["0"]
    assert await newest(book, (ReplayState.FINISHED,), 2) == ()
    assert [i.position for i in await items(book, page[0].id, (PENDING,), 2, above=2)] == [3, 4]
    assert (await items(book, page[0].id, (), 1))[0].letter == row(1)["id"]
