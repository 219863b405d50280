"""Letters over HTTP: pages that hold still, one letter whole, hostile questions; on both databases."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
import pytest

from service.ledger.book import Book
from tests.ledger.rows import CAUSE, NOW, burial_row, file, fill, letter_row
from tests.web.conftest import problem

PATH = "/api/v1/letters"


async def pages(client: httpx2.AsyncClient, **asked: Any) -> list[list[str]]:
    """Every page of a list, as the letters' message ids."""
    found, cursor = [], None
    while True:
        answer = await client.get(PATH, params={**asked, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found.append([item["letter"] for item in page["items"]])
        cursor = page["next"]
        if cursor is None:
            return found


async def test_an_empty_ledger_has_an_empty_page(client: httpx2.AsyncClient) -> None:
    assert (await client.get(PATH)).json() == {"items": [], "next": None}
    assert (await client.get(f"{PATH}/count")).json() == {"letters": 0, "more": False}


async def test_pages_are_newest_first_and_hold_still_while_letters_come(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await file(book, 7)
    first = (await client.get(PATH, params={"limit": 3})).json()
    assert [item["letter"] for item in first["items"]] == ["message-7", "message-6", "message-5"]
    await fill(book, "letters", *(letter_row(number) for number in range(8, 12)))
    then = (await client.get(PATH, params={"limit": 3, "cursor": first["next"]})).json()
    assert [item["letter"] for item in then["items"]] == ["message-4", "message-3", "message-2"]
    last = (await client.get(PATH, params={"limit": 3, "cursor": then["next"]})).json()
    assert [item["letter"] for item in last["items"]] == ["message-1"]
    assert last["next"] is None


ALL = [f"message-{number}" for number in (5, 4, 3, 2, 1)]
FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"state": "back"}, ["message-5"]),
    ({"state": ["back", "sent", "back"]}, ["message-5", "message-4"]),
    ({"cause": "00000000000000c2"}, ["message-4"]),
    ({"cause": CAUSE, "state": "parked", "flow": "freeflow"}, ["message-3"]),
    ({"origin_queue": "payments"}, ["message-2"]),
    ({"routing_key": "order.paid"}, ["message-1"]),
    ({"letter": "message-3"}, ["message-3"]),
    ({"id": [f"{n:032x}" for n in (1, 5)]}, ["message-5", "message-1"]),
    ({"header": "tenant=acme"}, ALL),
    ({"header": 'ten"ant=x'}, []),
    ({"text": "ORDER 3"}, ["message-3"]),
    ({"text": "%"}, []),
    ({"queue": "dlq-queue", "since": "2026-03-04T13:30:00+01:00"}, ALL),
    ({"until": NOW.isoformat()}, []),
    ({"flow": "freeflow", "error_type": "ValueError"}, ["message-3"]),
]


async def test_filters(client: httpx2.AsyncClient, book: Book) -> None:
    await fill(
        book,
        "letters",
        letter_row(1, routing_key="order.paid"),
        letter_row(2, origin_queue="payments"),
        letter_row(3, flow="freeflow"),
        letter_row(4, state="sent", cause="00000000000000c2"),
        letter_row(5, state="back"),
    )
    for asked, expected in FILTERS:
        assert await pages(client, **asked) == [expected], asked
        count = (await client.get(f"{PATH}/count", params=asked)).json()
        assert count == {"letters": len(expected), "more": False}, asked


async def test_a_page_looks_no_further_than_a_bound_and_the_next_goes_on(
    client: httpx2.AsyncClient, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ledger.walks.WINDOW", 4)
    rows = [letter_row(n, error="rare" if n in (2, 9) else "usual") for n in range(1, 11)]
    await fill(book, "letters", *rows)
    found = await pages(client, text="rare", limit=5)
    assert [letter for page in found for letter in page] == ["message-9", "message-2"]
    assert len(found) == 3
    by_state = await pages(client, text="rare", state=["parked", "back"], limit=1)
    assert [letter for page in by_state for letter in page] == ["message-9", "message-2"]


async def test_one_letter_is_whole(client: httpx2.AsyncClient, book: Book) -> None:
    body = b'{"order": "\xc3\xa9"}'
    await fill(book, "letters", letter_row(1, body=body, burials=2, replays=1, state="back"))
    await fill(book, "burials", burial_row(1, 1))
    found = (await client.get(f"{PATH}/{1:032x}")).json()
    assert found["body"] == {
        "base64": base64.b64encode(body).decode(),
        "text": body.decode(),
        "whole": True,
    }
    assert found["headers"] == {"tenant": "acme", "x-retry-count": 3}
    assert found["properties"] == {"content_type": "application/json"}
    assert [burial["burial"] for burial in found["earlier"]] == [1]
    assert found["why"] == (
        "Delivered 4 times, failed 4 times: rejected by a consumer of orders;"
        " buried 2 times, each time alike."
    )
    answer = await client.get(f"{PATH}/{1:032x}/body")
    assert answer.content == body
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == f'attachment; filename="{1:032x}.bin"'


async def test_a_large_body_is_previewed_and_downloaded_whole(
    client: httpx2.AsyncClient, book: Book
) -> None:
    body = "é".encode() * 40_000  # the preview ends within a character
    await fill(book, "letters", letter_row(1, body=b"x" + body), letter_row(2, body=b"\xff\x00"))
    found = (await client.get(f"{PATH}/{1:032x}")).json()["body"]
    assert (found["whole"], found["text"][:2], len(found["text"])) == (False, "xé", 32_768)
    assert (await client.get(f"{PATH}/{1:032x}/body")).content == b"x" + body
    assert (await client.get(f"{PATH}/{2:032x}")).json()["body"]["text"] is None


async def test_what_is_not_there(client: httpx2.AsyncClient) -> None:
    for id_ in ("nope", "0" * 32, "0" * 500, "%00", "G" * 32):
        problem(await client.get(f"{PATH}/{id_}"), 404)
        problem(await client.get(f"{PATH}/{id_}/body"), 404)


HOSTILE = ("'", '"', "'; DROP TABLE letters; --", "\x00", "a" * 10_240, "\u202e𝔘\u0301", "%", "\\")
NAMES = (
    *("flow", "queue", "origin_queue", "routing_key", "letter", "error_type", "text", "cause"),
    *("id", "state", "since", "until", "cursor", "limit", "nonsense"),
)


async def test_hostile_filters_are_refused_or_find_nothing(
    client: httpx2.AsyncClient, book: Book
) -> None:
    await fill(book, "letters", letter_row(1))
    for value in HOSTILE:
        asked = [(name, value) for name in NAMES]
        asked += [("header", text) for text in (f"{value}=x", f"tenant={value}", value)]
        for name, text in asked:
            answer = await client.get(PATH, params={name: text})
            if answer.status_code == 200:
                assert answer.json()["items"] == [], (name, text)
            else:
                problem(answer, 422)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "===",
        "W10",
        "WzEsImxldHRlcnMiLC0xXQ",
        "WzEsImF1ZGl0Iiw1XQ",
        "WzIsImxldHRlcnMiLDFd",
        "WzEsImxldHRlcnMiLDkyMjMzNzIwMzY4NTQ3NzU4MDhd",
    ],
)
async def test_a_broken_cursor_is_a_problem_with_a_hint(
    door: httpx2.AsyncClient, cursor: str
) -> None:
    assert "next" in problem(await door.get(PATH, params={"cursor": cursor}), 422)["hint"]
