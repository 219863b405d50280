"""The runner over a real ledger, with a post that fails as it is told: nothing is lost, nothing doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from service.core.states import ItemState, ReplayState
from service.edge.post import NotSent, Unroutable
from service.flows.desk import utc_now
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.claims import mark_sent
from service.ledger.replay_pages import find
from service.ledger.replays import Replay, open_replay
from service.ledger.schema import upgrade
from tests.kit.letters import park, results, states
from tests.replay.postbox import BATCH, DRAFT, Postbox, ended, running
from tests.servers.waiting import eventually


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    """A ledger of either kind, with 60 parked letters and a job for them."""
    await upgrade(database_url)
    book = Book(database_url)
    await park(book, 60)
    await open_replay(book, DRAFT, utc_now())
    yield book
    await book.close()


def _stumbles(_job: str) -> None:
    raise ZeroDivisionError


async def test_two_runners_share_a_ledger_and_send_each_letter_once(book: Book) -> None:
    post = Postbox()
    told: list[str] = []
    async with running(book, post) as runner, running(book, post):
        runner.listeners.append(told.append)
        runner.listeners.append(_stumbles)  # whoever listens changes nothing
        job = await ended(book)
    assert (job.state, job.figures) == (ReplayState.FINISHED, {ItemState.QUIET: 60})
    assert (len(post.sent), post.sent.total()) == (60, 60)
    assert set((await states(book)).values()) == {"quiet"}
    assert set(told) <= {DRAFT.id}


async def test_a_broker_that_is_away_makes_the_job_wait_and_say_so(book: Book) -> None:
    post = Postbox()
    post.before = lambda _letter: NotSent("nobody answers")
    async with running(book, post):

        async def says() -> bool:
            job = await find(book, DRAFT.id)
            return isinstance(job, Replay) and job.says == "letters are held: nobody answers"

        await eventually(says)
        post.before = lambda _letter: None
        job = await ended(book)
    assert (job.figures, job.says) == ({ItemState.QUIET: 60}, "")
    assert post.sent.total() == 60


async def test_a_runner_that_ends_finishes_what_it_has_in_hand(book: Book) -> None:
    post = Postbox()
    async with running(book, post):
        await eventually(lambda: post.sent.total() >= 20)
        post.open.clear()
        await asyncio.sleep(0.1)
        asyncio.get_running_loop().call_later(0.3, post.open.set)
    at_the_end = post.sent.total()
    assert (await results(book, DRAFT.id)).count(ItemState.CLAIMED) == 0
    async with running(book, post):  # at once: the jobs were let go
        await eventually(lambda: post.sent.total() > at_the_end, within=0.5)
        await ended(book)
    assert (len(post.sent), post.sent.total()) == (60, 60)


async def test_a_ledger_that_is_away_after_the_sending_makes_nothing_go_out_twice(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    post, faults = Postbox(), iter([LedgerAway("away")] * 2)

    async def sometimes(*arguments: object) -> None:
        if fault := next(faults, None):
            raise fault
        await mark_sent(*arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr("service.office.driver.mark_sent", sometimes)
    async with running(book, post):
        job = await ended(book)
    assert job.figures == {ItemState.QUIET: 60}
    assert (len(post.sent), post.sent.total()) == (60, 60)


async def test_letters_that_no_queue_takes_stop_the_job(book: Book) -> None:
    post = Postbox()
    post.before = lambda letter: Unroutable("no queue") if int(letter[7:]) % 2 else None
    async with running(book, post):
        job = await ended(book)
    assert job.state is ReplayState.STOPPED
    unroutable, quiet = job.figures[ItemState.UNROUTABLE], job.figures[ItemState.QUIET]
    assert job.says == f"{unroutable} of {unroutable + quiet} found no queue, more than 10 %"
    assert 20 <= unroutable + quiet <= 20 + BATCH
    assert Counter((await states(book)).values()) == {"quiet": quiet, "parked": 60 - quiet}
