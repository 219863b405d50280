"""Discard, restore and edit over HTTP: all or none, audited, on both databases."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
import pytest

from service.core.states import LetterState
from service.edge.fields import decode_table
from service.ledger.book import Book
from service.ledger.filters import Filter
from service.ledger.letters import Whole, count, find
from tests.ledger.rows import CAUSE, file, fill, letter_row
from tests.web.conftest import api_of, client_of, problem

PATH = "/api/v1/letters"


async def states(book: Book) -> dict[str, int]:
    """How many letters are in which state, by the counts and by looking."""
    kept = {state: await count(book, Filter(states=(state,))) for state in LetterState}
    seen = {s: await count(book, Filter(states=(s,), queue="dlq-queue")) for s in LetterState}
    assert kept == seen
    return {state.value: many for state, many in kept.items() if many}


async def deeds(client: httpx2.AsyncClient, **asked: str) -> list[dict[str, Any]]:
    answer = await client.get("/api/v1/audit", params=asked)
    assert answer.status_code == 200
    return list(answer.json()["items"])


async def act(client: httpx2.AsyncClient, verb: str, **body: object) -> httpx2.Response:
    return await client.post(f"{PATH}/{verb}", json={"why": "test orders", **body})


async def test_discarded_letters_come_back_as_they_were(
    client: httpx2.AsyncClient, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ledger.discards.CHUNK", 2)  # several statements, one transaction
    await file(book, 5)
    await fill(book, "letters", letter_row(6, state="back", replays=1), letter_row(7, state="sent"))
    wanted = {"filter": {"cause": CAUSE}}
    dry = await act(client, "discard", **wanted, dry_run=True)
    assert dry.json() == {"letters": 6, "dry_run": True}
    assert await states(book) == {"parked": 5, "back": 1, "sent": 1}
    done = await act(client, "discard", **wanted, expected=6)
    assert done.json() == {"letters": 6, "dry_run": False}
    assert await states(book) == {"discarded": 6, "sent": 1}
    back = await act(client, "restore", filter={})
    assert back.json()["letters"] == 6
    assert await states(book) == {"parked": 5, "back": 1, "sent": 1}
    restored, discarded = await deeds(client)
    assert (discarded["action"], discarded["how_many"]) == ("letters.discard", 6)
    assert (discarded["subject"], discarded["why"]) == (f"cause:{CAUSE}", "test orders")
    assert (discarded["who"], discarded["details"]) == ("local", {"filter": {"cause": CAUSE}})
    assert (restored["action"], restored["subject"]) == ("letters.restore", "letters")
    assert await deeds(client, subject=f"cause:{CAUSE}") == [discarded]


async def test_another_number_than_expected_does_nothing(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await file(book, 3)
    told = problem(await act(client, "discard", filter={}, expected=2), 409)
    assert told["detail"] == "The filter takes 3 letters, not 2; nothing was done."
    assert await states(book) == {"parked": 3}
    assert await deeds(client) == []


async def test_what_is_not_open_is_not_discarded(client: httpx2.AsyncClient, book: Book) -> None:
    await fill(book, "letters", letter_row(1, state="sent"), letter_row(2))
    sent = await act(client, "discard", filter={"state": ["sent"]}, dry_run=True)
    assert sent.json()["letters"] == 0
    one = await act(client, "discard", filter={"id": [f"{n:032x}" for n in (1, 2)]})
    assert one.json()["letters"] == 1
    assert await states(book) == {"sent": 1, "discarded": 1}


@pytest.mark.parametrize(
    "body",
    [
        {"why": "x"},
        {"filter": {}},
        {"filter": {}, "why": ""},
        {"filter": {"staet": ["parked"]}, "why": "x"},
        {"filter": {}, "why": "x", "expected": -1},
        {"filter": {"id": ["0" * 32] * 1001}, "why": "x"},
        {"filter": {"letter": "\x00"}, "why": "x"},
    ],
)
async def test_what_cannot_be_meant_is_refused(
    door: httpx2.AsyncClient, body: dict[str, object]
) -> None:
    problem(await door.post(f"{PATH}/discard", json=body), 422)


async def test_an_edit_makes_a_copy_and_sets_the_original_aside(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await file(book, 1)
    old = f"{1:032x}"
    change = {"text": '{"order": 2}', "headers": {"tenant": None, "fixed": "é"}, "why": "a typo"}
    answer = await client.post(f"{PATH}/{old}/edit", json=change)
    assert answer.status_code == 201, answer.text
    new = answer.json()["id"]
    assert answer.headers["location"] == f"{PATH}/{new}"
    found = (await client.get(f"{PATH}/{new}")).json()
    assert (found["state"], found["edited_from"]) == ("parked", old)
    assert found["body"]["text"] == '{"order": 2}'
    assert found["headers"] == {"x-retry-count": 3, "fixed": "é"}
    original = (await client.get(f"{PATH}/{old}")).json()
    assert (original["state"], original["edits"]) == ("discarded", [new])
    assert original["body"]["text"] == '{"order": 1}'
    listed = await client.get(PATH, params={"header": "fixed=é"})
    assert [item["id"] for item in listed.json()["items"]] == [new]
    (deed,) = await deeds(client, action="letter.edit")
    assert deed["details"] == {"headers": ["fixed", "tenant"], "edited_as": new}
    assert "order" not in str(deed)
    problem(await client.post(f"{PATH}/{old}/edit", json=change), 409)
    again = {"body": base64.b64encode(b'{"order": 2}').decode(), "why": "the same"}
    problem(await client.post(f"{PATH}/{new}/edit", json=again), 409)
    problem(await client.post(f"{PATH}/{'0' * 32}/edit", json=change), 404)
    for wrong in ({"body": "?"}, {"body": "", "text": ""}, {"headers": {"x" * 256: "y"}}):
        problem(await client.post(f"{PATH}/{new}/edit", json={"why": "x", **wrong}), 422)


async def test_bytes_that_no_text_can_say_survive_an_edit_of_the_headers(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await fill(book, "letters", letter_row(1, body=b"\x00\xff"))
    change = {"headers": {"n": 2**40, "x-retry-count": 0}, "why": "x"}
    new = (await client.post(f"{PATH}/{1:032x}/edit", json=change)).json()["id"]
    whole = await find(book, new)
    assert isinstance(whole, Whole)
    assert whole.body == b"\x00\xff"
    assert decode_table(whole.headers) == ({"tenant": "acme", "n": 2**40, "x-retry-count": 0}, "")


async def test_nothing_is_edited_where_the_settings_do_not_allow_it(book: Book) -> None:
    await file(book, 1)
    async with client_of(api_of(book, may_edit=False)) as client:
        answer = await client.post(f"{PATH}/{1:032x}/edit", json={"text": "x", "why": "x"})
        assert "ledger.edit" in problem(answer, 403)["hint"]
    assert await states(book) == {"parked": 1}
