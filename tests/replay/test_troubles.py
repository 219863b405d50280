"""A job in trouble: a letter that cannot be sent, a queue that is full, nobody who sees what dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select

from service.core.states import ItemState, ReplayState
from service.edge.kept import letter_from
from service.edge.letter import Letter
from service.edge.post import NotTaken, Unroutable, Unsendable
from service.flows.desk import utc_now
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.claims import close_windows, mark_sent, mark_unroutable
from service.ledger.replay_pages import find, items
from service.ledger.replays import Replay, open_replay
from service.ledger.running import lease, progress
from service.ledger.schema import upgrade
from service.ledger.tables import REPLAYS
from tests.kit.letters import park
from tests.replay.postbox import DRAFT, TERMS, Postbox, ended, running
from tests.servers.waiting import eventually

CANARY = replace(DRAFT, terms=replace(TERMS, canary=1))


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    """An empty ledger of either kind."""
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


def at_first(verb: Callable[..., Awaitable[Any]], *faults: Exception) -> Callable[..., Any]:
    """The verb, once these faults are behind it."""
    coming = iter(faults)

    async def sometimes(*arguments: Any) -> Any:
        if fault := next(coming, None):
            raise fault
        return await verb(*arguments)

    return sometimes


async def test_a_letter_that_cannot_be_sent_is_its_own_result_and_holds_up_no_other(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 40)
    await open_replay(book, DRAFT, utc_now())

    def reads(body: bytes, headers: bytes, properties: bytes) -> Letter:
        if body == b"00003":
            raise ZeroDivisionError
        return letter_from(body, headers, properties)

    monkeypatch.setattr("service.office.driver.letter_from", reads)
    post = Postbox()
    post.before = lambda letter: Unsendable("too long") if letter == "letter-7" else None
    async with running(book, post):
        job = await ended(book)
    assert job.figures == {ItemState.QUIET: 38, ItemState.UNROUTABLE: 2}
    assert (len(post.sent), post.sent.total()) == (38, 38)
    lost = await items(book, job.id, (ItemState.UNROUTABLE,), 9)
    assert [i.says for i in lost] == ["it cannot be read: ZeroDivisionError", "too long"]


async def test_a_full_queue_does_not_hold_the_job_s_other_queues(book: Book) -> None:
    await park(book, 25, origin_queue="full")  # more than are claimed at once
    await park(book, 15, 26)
    await open_replay(book, DRAFT, utc_now())
    post, told = Postbox(), Counter[ItemState]()
    post.before = lambda letter: NotTaken("it is full") if int(letter[7:]) <= 25 else None
    async with running(book, post, lambda result, count: told.update({result: count})):
        await eventually(lambda: post.sent.total() == 15)
        job = await find(book, DRAFT.id)
        assert isinstance(job, Replay)
        assert (job.state, job.says) == (ReplayState.RUNNING, "letters are held: it is full")
        known = await eventually(lambda: _watched_out(book))
        assert (known.to_send, known.sent, known.failed) == (25, 15, 0)
        post.before = lambda _letter: None
        job = await ended(book)
    assert (job.says, job.figures) == ("", {ItemState.QUIET: 40})
    assert (len(post.sent), post.sent.total()) == (40, 40)
    assert told[ItemState.SENT] == 40


async def _watched_out(book: Book) -> Any:
    async with book.reading() as connection:
        runner = await connection.scalar(select(REPLAYS.c.runner))
    found = await progress(book, DRAFT.id, str(runner))
    return found[1] if found is not None and not found[1].watched else None


async def test_a_canary_that_a_full_queue_refuses_is_waited_for(book: Book) -> None:
    await park(book, 1, origin_queue="full")
    await park(book, 9, 2)
    await open_replay(book, CANARY, utc_now())
    post, tries = Postbox(), Counter[str]()

    def refuses(letter: str) -> Exception | None:
        tries[letter] += 1
        return NotTaken("it is full") if letter == "letter-1" and tries[letter] < 3 else None

    post.before = refuses
    async with running(book, post):
        await eventually(lambda: tries["letter-1"] == 2)
        assert set(tries) == {"letter-1"}
        await ended(book)
    assert post.sent.total() == 10


async def test_no_window_closes_while_nobody_would_see_a_letter_die(book: Book) -> None:
    await park(book, 3)
    await open_replay(book, CANARY, utc_now())
    post, trouble = Postbox(), ["intake is held up"]
    async with running(book, post, blind=lambda: trouble[0]):
        await eventually(lambda: post.sent.total() == 1)
        await asyncio.sleep(3 * TERMS.watch.total_seconds())  # time for a window to close
        assert post.sent.total() == 1
        trouble[0] = ""
        await ended(book)
    assert post.sent.total() == 3


async def test_a_window_does_not_close_at_once_when_the_ledger_is_back(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 3)
    await open_replay(book, CANARY, utc_now())
    post, away = Postbox(), [False]
    seen, closed = list[datetime](), list[datetime]()

    async def sometimes(*arguments: Any) -> Any:
        if away[0]:
            raise LedgerAway("away")
        seen.append(utc_now())
        return await progress(*arguments)

    async def noted(*arguments: Any) -> int:
        closed.append(utc_now())
        return await close_windows(*arguments)

    monkeypatch.setattr("service.office.replay.progress", sometimes)
    monkeypatch.setattr("service.office.driver.close_windows", noted)
    async with running(book, post):
        await eventually(lambda: post.sent.total() == 1)
        away[0] = True
        await asyncio.sleep(2 * TERMS.watch.total_seconds())  # longer than the window
        seen.clear()
        closed.clear()
        away[0] = False
        await ended(book)
    assert closed[0] - seen[0] >= TERMS.watch
    assert post.sent.total() == 3


async def test_what_was_sent_is_not_forgotten_with_the_lease(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 5)
    await open_replay(book, DRAFT, utc_now())
    post, lost = Postbox(), [False]

    async def fails_once(*arguments: Any) -> None:
        if not lost:
            return await mark_sent(*arguments)
        raise LedgerAway("away")

    async def not_ours_then(*arguments: Any) -> Any:
        if post.sent and lost:
            lost.clear()
            return None
        return await progress(*arguments)

    monkeypatch.setattr("service.office.driver.mark_sent", fails_once)
    monkeypatch.setattr("service.office.replay.progress", not_ours_then)
    async with running(book, post):
        job = await ended(book)
    assert job.figures == {ItemState.QUIET: 5}
    assert (len(post.sent), post.sent.total()) == (5, 5)


async def test_a_result_is_told_once_however_often_the_other_must_be_written(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 10)
    await open_replay(book, DRAFT, utc_now())
    sometimes = at_first(mark_unroutable, LedgerAway("away"), LedgerAway("away"))
    monkeypatch.setattr("service.office.driver.mark_unroutable", sometimes)
    post, told = Postbox(), Counter[ItemState]()
    post.before = lambda letter: Unroutable("no queue") if letter == "letter-3" else None
    async with running(book, post, lambda result, count: told.update({result: count})):
        await ended(book)
    assert told == {ItemState.SENT: 9, ItemState.UNROUTABLE: 1, ItemState.QUIET: 9}


async def test_the_runner_outlives_what_nobody_thought_of(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    await park(book, 2)
    await open_replay(book, DRAFT, utc_now())
    monkeypatch.setattr("service.office.replay.lease", at_first(lease, ZeroDivisionError()))
    async with running(book, Postbox()):
        assert (await ended(book)).figures == {ItemState.QUIET: 2}
