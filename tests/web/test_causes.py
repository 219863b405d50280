"""Causes over HTTP: pages, one cause, and its life in people's hands; on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from service.ledger.book import Book
from service.web.api.cursors import cursor as cursor_of
from tests.ledger.rows import CAUSE, NOW, cause_row, file, fill, letter_row
from tests.web.conftest import problem

PATH = "/api/v1/causes"
ONE = f"{PATH}/{CAUSE}"


def id_of(number: int) -> str:
    return f"{number:016x}"


async def titles(client: httpx2.AsyncClient, **asked: Any) -> list[str]:
    answer = await client.get(PATH, params=asked)
    assert answer.status_code == 200, answer.text
    return [item["title"] for item in answer.json()["items"]]


async def test_no_causes_are_an_empty_page(client: httpx2.AsyncClient) -> None:
    assert (await client.get(PATH)).json() == {"items": [], "next": None}


async def test_causes_have_their_counts_and_their_day(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await file(book, 3)
    await fill(book, "letters", letter_row(4, state="back"), letter_row(5, state="handled"))
    hour = NOW.replace(minute=0)
    await fill(
        book,
        "cause_hours",
        {"cause": CAUSE, "hour": hour, "burials": 2},
        {"cause": CAUSE, "hour": hour - timedelta(hours=23), "burials": 3},
        {"cause": CAUSE, "hour": hour - timedelta(hours=24), "burials": 9},
    )
    (cause,) = (await client.get(PATH)).json()["items"]
    assert (cause["open"], cause["letters"]) == (4, {"parked": 3, "back": 1, "handled": 1})
    assert (cause["hours"][0], cause["hours"][-1], sum(cause["hours"])) == (3, 2, 5)
    found = (await client.get(ONE)).json()
    assert {key: found[key] for key in cause} == cause
    assert [line["burials"] for line in found["week"]] == [9, 3, 2]
    assert found["breakdown"] == {
        "letters": 4,
        "whole": True,
        "lines": [{"routing_key": "order.created", "origin_queue": "orders", "letters": 4}],
    }


async def test_pages_of_causes_hold_still_while_causes_come(
    client: httpx2.AsyncClient, book: Book
) -> None:
    rows = [
        cause_row(id_of(n), title=f"cause {n}", changed_at=NOW - timedelta(minutes=n // 2))
        for n in range(1, 8)
    ]
    await fill(book, "causes", *rows)
    seen: list[str] = []
    cursor = None
    while True:
        asked = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        page = (await client.get(PATH, params=asked)).json()
        seen += [item["title"] for item in page["items"]]
        new = cause_row(id_of(100 + len(seen)), title="new", changed_at=NOW + timedelta(minutes=1))
        await fill(book, "causes", new)
        if (cursor := page["next"]) is None:
            break
    assert seen == [f"cause {n}" for n in (1, 3, 2, 5, 4, 7, 6)]
    problem(await client.get(PATH, params={"cursor": "nope"}), 422)
    other = (await client.get(PATH, params={"limit": 1})).json()["next"]
    problem(await client.get(PATH, params={"cursor": other, "sort": "last_seen"}), 422)


@pytest.mark.parametrize(
    "moment", ["soon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
async def test_a_cursor_at_no_moment_of_ours_is_refused(
    door: httpx2.AsyncClient, moment: str
) -> None:
    problem(await door.get(PATH, params={"cursor": cursor_of("changed", moment, "x")}), 422)


async def test_causes_are_found(client: httpx2.AsyncClient, book: Book) -> None:
    over, later = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)
    await fill(
        book,
        "causes",
        cause_row(id_of(1), title="a", owner="anna", last_seen=NOW - timedelta(hours=3)),
        cause_row(id_of(2), title="b 100%", state="muted", changed_at=NOW - timedelta(hours=1)),
        cause_row(id_of(3), title="c", state="muted", muted_until=over, changed_at=over),
        cause_row(id_of(4), title="d", state="muted", muted_until=later, changed_at=later),
    )
    await fill(book, "letters", letter_row(1, cause=id_of(2)))
    assert await titles(client) == ["d", "a", "c", "b 100%"]
    assert await titles(client, sort="last_seen") == ["d", "c", "b 100%", "a"]
    assert await titles(client, state="muted") == ["d", "b 100%"]
    assert await titles(client, state=["acknowledged", "new"]) == ["a", "c"]
    assert await titles(client, owner="anna") == ["a"]
    assert await titles(client, text="100%") == ["b 100%"]
    assert await titles(client, open="true") == ["b 100%"]
    assert await titles(client, open="false") == ["d", "a", "c"]
    for wrong in ({"state": "'"}, {"text": "\x00"}, {"owner": "x" * 10_240}, {"sort": "title"}):
        problem(await client.get(PATH, params=wrong), 422)


async def test_the_life_of_a_cause_is_audited(client: httpx2.AsyncClient, book: Book) -> None:
    await fill(book, "causes", cause_row())
    later = (NOW + timedelta(hours=1)).isoformat()
    steps: list[tuple[str, dict[str, str] | None, str]] = [
        ("acknowledge", None, "acknowledged"),
        ("acknowledge", None, "acknowledged"),
        ("mute", {"until": later, "why": "known"}, "muted"),
        ("unmute", None, "acknowledged"),
        ("mute", None, "muted"),
        ("resolve", {"why": "mended"}, "resolved"),
        ("resolve", None, "resolved"),
    ]
    for verb, body, state in steps:
        answer = await client.post(f"{ONE}/{verb}", json=body)
        assert (answer.status_code, answer.json()["state"]) == (200, state), answer.text
    for verb in ("acknowledge", "mute", "unmute"):
        problem(await client.post(f"{ONE}/{verb}"), 409)
    note = {"note": "ask\nthe bank", "owner": "anna"}
    noted = (await client.put(f"{ONE}/note", json=note)).json()
    assert (noted["note"], noted["owner"], noted["state"]) == ("ask\nthe bank", "anna", "resolved")
    await client.put(f"{ONE}/note", json=note)
    asked = {"subject": f"cause:{CAUSE}"}
    deeds = (await client.get("/api/v1/audit", params=asked)).json()["items"]
    actions = ["note", "resolve", "mute", "unmute", "mute", "acknowledge"]
    assert [deed["action"] for deed in deeds] == [f"cause.{action}" for action in actions]
    assert (deeds[1]["why"], deeds[4]["details"]) == ("mended", {"until": later})


async def test_what_is_not_there(client: httpx2.AsyncClient) -> None:
    for id_ in ("nope", "0" * 16, "%00", "0" * 500):
        problem(await client.get(f"{PATH}/{id_}"), 404)
        problem(await client.post(f"{PATH}/{id_}/resolve"), 404)
        problem(await client.put(f"{PATH}/{id_}/note", json={"note": ""}), 404)


async def test_what_cannot_be_meant_is_refused(client: httpx2.AsyncClient, book: Book) -> None:
    await fill(book, "causes", cause_row())
    for body in ({"until": NOW.isoformat()}, {"until": "soon"}, {"why": "\x00"}, {"x": 1}):
        problem(await client.post(f"{ONE}/mute", json=body), 422)
    problem(await client.put(f"{ONE}/note", json={"owner": "anna"}), 422)


async def test_the_status_says_how_things_are(client: httpx2.AsyncClient, book: Book) -> None:
    empty = (await client.get("/api/v1/status")).json()["ledger"]
    assert (empty["oldest"], empty["per_minute"], empty["flows"]) == (None, 0.0, {})
    old = {"filed_at": NOW - timedelta(hours=1), "buried_at": NOW - timedelta(hours=1)}
    await file(book, 10)
    await fill(book, "letters", letter_row(11, state="back", flow="freeflow", **old))
    hour = NOW.replace(minute=0) - timedelta(hours=1)
    await fill(book, "cause_hours", {"cause": CAUSE, "hour": hour, "burials": 2880})
    ledger = (await client.get("/api/v1/status")).json()["ledger"]
    assert ledger["letters"]["parked"] == 10
    assert ledger["flows"] == {"dlq_processor": 10, "freeflow": 1}
    assert ledger["oldest"] == "2026-03-04T11:30:00Z"
    assert (ledger["per_minute"], ledger["usual_per_minute"]) == (2.0, 2.0)
    assert ledger["causes"]["new"] == 1
