"""Filing: however often a letter comes it has one row, and the counts are those of the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from service.core.identity import body_digest, burial_digest
from service.core.states import CauseState, LetterState
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.burial import Burial, Sent
from service.ledger.edits import edit
from service.ledger.filing import Filed, file
from service.ledger.retention import DONE, forget
from service.ledger.schema import upgrade
from service.ledger.tables import (
    BURIALS,
    CAUSE_HOURS,
    CAUSES,
    LETTER_COUNTS,
    LETTERS,
    REPLAY_ITEMS,
)
from tests.ledger.burials import NOW, burial, rows


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


async def put(book: Book, *burials: Burial) -> Filed:
    return await file(book, burials, NOW)


async def set_state(book: Book, state: LetterState) -> None:
    """As a replay or an operator does it, for every letter."""
    async with book.writing() as connection:
        await connection.execute(update(LETTERS).values(state=state.value))


async def the_letter(book: Book) -> dict[str, object]:
    (row,) = await rows(book, LETTERS)
    return row


async def test_a_batch_is_filed_with_its_causes_and_counts(book: Book) -> None:
    letters = [burial(f"l{n}", error=f"boom {n}") for n in range(3)]
    other = burial("x", error="no such table")
    assert await put(book, *letters, other) == Filed(new=4)
    found = {row["letter"]: row for row in await rows(book, LETTERS)}
    assert found["l0"]["body"] == b"{}"
    assert found["l0"]["facts"] == {"headers": {"attempt": 1}, "properties": {}}
    assert found["l0"]["headers"] == letters[0].headers
    causes = {row["title"]: row for row in await rows(book, CAUSES)}
    assert {title: row["burials"] for title, row in causes.items()} == {
        "Boom: boom <n>": 3,
        "Boom: no such table": 1,
    }
    assert {row["state"] for row in causes.values()} == {CauseState.NEW}
    hours = {row["cause"]: row["burials"] for row in await rows(book, CAUSE_HOURS)}
    assert hours == {row["id"]: row["burials"] for row in causes.values()}
    assert {row["letters"] for row in await rows(book, LETTER_COUNTS)} == {3, 1}


@pytest.mark.parametrize("redelivered", [False, True])
async def test_a_copy_changes_nothing(book: Book, redelivered: bool) -> None:
    again = burial()._replace(redelivered=redelivered)
    await put(book, burial())
    before = await the_letter(book)
    assert await put(book, again, again) == Filed(copies=2)
    assert await the_letter(book) == before
    assert [row["burials"] for row in await rows(book, CAUSES)] == [1]


async def test_copies_within_one_batch_are_one_letter(book: Book) -> None:
    assert await put(book, burial(), burial(), burial("b")) == Filed(new=2, copies=1)


async def test_an_older_burial_never_overwrites_a_newer_one(book: Book) -> None:
    assert await put(book, burial(attempt=1), burial(attempt=2)) == Filed(new=1, again=1)
    assert await put(book, burial(attempt=1)._replace(redelivered=True)) == Filed(copies=1)
    row = await the_letter(book)
    assert (row["reason"], row["burials"], row["state"]) == ("attempt 2", 2, LetterState.PARKED)
    (old,) = await rows(book, BURIALS)
    assert (old["reason"], old["burial"]) == ("attempt 1", 1)
    assert [row["burials"] for row in await rows(book, CAUSES)] == [2]


@pytest.mark.parametrize("state", [LetterState.SENT, LetterState.QUIET, LetterState.HANDLED])
async def test_a_replayed_letter_that_dies_again_is_back(book: Book, state: LetterState) -> None:
    await put(book, burial(attempt=1))
    await set_state(book, state)
    await put(book, burial(attempt=2))
    assert (await the_letter(book))["state"] == LetterState.BACK
    (counts,) = [row for row in await rows(book, LETTER_COUNTS) if row["letters"]]
    assert (counts["state"], counts["letters"]) == (LetterState.BACK, 1)


@pytest.mark.parametrize(
    ("redelivered", "state", "burials"),
    [(True, LetterState.DISCARDED, 1), (False, LetterState.PARKED, 2)],
)
async def test_known_bytes_of_a_letter_that_left_count_only_when_they_were_put_there_anew(
    book: Book, redelivered: bool, state: LetterState, burials: int
) -> None:
    await put(book, burial())
    await set_state(book, LetterState.DISCARDED)
    await put(book, burial()._replace(redelivered=redelivered))
    row = await the_letter(book)
    assert (row["state"], row["burials"]) == (state, burials)


async def test_what_a_replay_sent_is_its_letter_wherever_it_dies(book: Book) -> None:
    await put(book, burial())
    number = (await the_letter(book))["number"]
    item = {"replay": "j1", "position": 7, "letter": number, "queue": "elsewhere"}
    async with book.writing() as connection:
        await connection.execute(REPLAY_ITEMS.insert().values(**item, state="claimed"))
    mark = Sent("j1", 7, burial().id)
    elsewhere = burial(attempt=2, origin_queue="elsewhere", sent=mark)
    assert await put(book, elsewhere) == Filed(again=1, back=1)
    row = await the_letter(book)
    assert (row["state"], row["origin_queue"]) == (LetterState.BACK, "elsewhere")
    (after,) = await rows(book, REPLAY_ITEMS)
    assert after["state"] == "back"


async def test_the_number_of_a_forgotten_letter_is_nobody_else_s(book: Book) -> None:
    """Items of replays name letters by number, and stay when a letter is forgotten."""
    await put(book, burial("a"))
    gone = (await the_letter(book))["number"]
    await set_state(book, LetterState.HANDLED)
    assert await forget(book, DONE, NOW + timedelta(days=1)) == 1
    await put(book, burial("b"))
    assert (await the_letter(book))["number"] != gone


async def test_a_late_copy_of_a_forgotten_letter_overwrites_no_other(book: Book) -> None:
    await put(book, burial("b"))
    other = await the_letter(book)
    item = {"replay": "j1", "position": 7, "letter": other["number"], "queue": "orders"}
    async with book.writing() as connection:
        await connection.execute(REPLAY_ITEMS.insert().values(**item, state="handled"))
    late = burial("a", attempt=2, sent=Sent("j1", 7, burial("a").id))
    assert await put(book, late) == Filed(new=1)
    found = {row["letter"]: row for row in await rows(book, LETTERS)}
    assert found["b"] == other
    assert found["a"]["state"] == LetterState.PARKED


async def test_an_edited_letter_has_the_digest_of_its_burial(book: Book) -> None:
    await put(book, burial())
    row = await the_letter(book)
    deed = Deed("ann", "letter.edit", str(row["id"]))
    await edit(book, str(row["id"]), lambda old: replace(old, body=b"new"), deed, NOW)
    (copy,) = [row for row in await rows(book, LETTERS) if row["edited_from"] is not None]
    assert copy["digest"] == burial_digest(copy["properties"], copy["headers"], body_digest(b"new"))


async def test_a_resolved_cause_that_comes_again_is_regressed(book: Book) -> None:
    await put(book, burial("a"))
    for state, after in (
        (CauseState.RESOLVED, CauseState.REGRESSED),
        (CauseState.ACKNOWLEDGED, CauseState.ACKNOWLEDGED),
    ):
        async with book.writing() as connection:
            await connection.execute(update(CAUSES).values(state=state.value))
        later = NOW + timedelta(hours=1)
        await file(book, [burial(f"b-{state}")], later)
        (cause,) = await rows(book, CAUSES)
        assert cause["state"] == after
    assert cause["burials"] == 3
    assert len(await rows(book, CAUSE_HOURS)) == 2


async def test_a_discarded_letter_is_only_recorded(book: Book) -> None:
    await put(book, burial(discarded=True))
    assert (await the_letter(book))["state"] == LetterState.DISCARDED


async def test_two_processes_with_the_same_letters_make_one_row_each(
    book: Book, database_url: str
) -> None:
    """Their batches overlap, in other orders, many times: no deadlock gets out, nothing twice."""
    other = Book(database_url)
    letters = [burial(f"l{n}", error=f"{n % 3}!" * (n % 3)) for n in range(60)]
    try:
        for start in range(0, 60, 20):
            some = letters[start : start + 20]
            filed = await asyncio.gather(
                put(book, *some), put(other, *reversed(some)), put(book, *some[5:])
            )
            total = filed[0] + filed[1] + filed[2]
            assert (total.new, total.copies) == (20, 35)
    finally:
        await other.close()
    assert sum(row["burials"] for row in await rows(book, CAUSES)) == 60
    assert sum(row["letters"] for row in await rows(book, LETTER_COUNTS)) == 60
