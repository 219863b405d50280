"""Routes over HTTP: the table's rows, written only as they were seen; on both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from service.ledger.book import Book
from service.ledger.engine import is_sqlite
from tests.ledger.conftest import run_sql
from tests.web.conftest import problem

PATH = "/api/v1/routes"


async def names(client: httpx2.AsyncClient) -> list[tuple[str, str]]:
    items = (await client.get(PATH)).json()["items"]
    return [(item["name"], item["source"]) for item in items]


async def test_a_route_is_made_changed_and_removed_as_it_was_seen(
    client: httpx2.AsyncClient,
) -> None:
    body = {"max_retries": 2, "delays": ["10s", "20s"], "why": "slow shop"}
    made = await client.put(f"{PATH}/order.*", json=body)
    assert made.status_code == 201, made.text
    etag = made.headers["etag"]
    assert made.json() == {
        "name": "order.*",
        "source": "table",
        "max_retries": 2,
        "delays": ["10s", "20s"],
        "return_to": "queue",
        "says": "retried at most 2 times, after 10s, 20s",
        "etag": etag.strip('"'),
        "complaints": [],
    }
    assert await names(client) == [("order.*", "table"), ("payment.*", "settings")]
    problem(await client.put(f"{PATH}/order.*", json=body), 428)
    problem(await client.put(f"{PATH}/order.*", json=body, headers={"If-Match": '"x"'}), 412)
    changed = await client.put(
        f"{PATH}/order.*", json={"max_retries": -1}, headers={"If-Match": etag}
    )
    assert (changed.status_code, changed.json()["max_retries"]) == (200, -1)
    assert (await client.get(f"{PATH}/order.*")).headers["etag"] == changed.headers["etag"] != etag
    problem(await client.delete(f"{PATH}/order.*"), 428)
    problem(await client.delete(f"{PATH}/order.*", headers={"If-Match": etag}), 412)
    gone = await client.delete(f"{PATH}/order.*", headers={"If-Match": changed.headers["etag"]})
    assert gone.status_code == 204
    problem(await client.delete(f"{PATH}/order.*"), 404)
    problem(await client.get(f"{PATH}/order.*"), 404)
    problem(await client.put(f"{PATH}/order.*", json=body, headers={"If-Match": etag}), 412)
    deeds = (await client.get("/api/v1/audit", params={"subject": "route:order.*"})).json()["items"]
    assert [deed["action"] for deed in deeds] == ["route.remove", "route.put", "route.put"]
    assert deeds[1]["details"]["before"]["max_retries"] == 2
    assert deeds[1]["details"]["after"]["max_retries"] == -1
    assert deeds[2]["why"] == "slow shop"


async def test_of_two_who_saw_the_same_one_writes(client: httpx2.AsyncClient) -> None:
    asked = [client.put(f"{PATH}/a.b", json={"max_retries": n}) for n in range(4)]
    made = sorted(answer.status_code for answer in await asyncio.gather(*asked))
    assert made[0] == 201
    assert set(made[1:]) <= {412, 428}
    etag = (await client.get(f"{PATH}/a.b")).headers["etag"]
    again = [
        client.put(f"{PATH}/a.b", json={"max_retries": n}, headers={"If-Match": etag})
        for n in range(10, 14)
    ]
    done = sorted(answer.status_code for answer in await asyncio.gather(*again))
    assert done == [200, 412, 412, 412]


TRIED: dict[str, dict[str, Any]] = {
    "order.created": {
        "route": "order.#",
        "source": "table",
        "steps": [
            {"retry": 1, "after": "10s", "at": "10s"},
            {"retry": 2, "after": "15s", "at": "25s"},
        ],
        "ends": "buried 25s after its first failure, when 2 retries have failed",
    },
    "payment.made": {"route": "payment.*", "source": "settings"},
    "other": {
        "route": None,
        "source": None,
        "steps": [],
        "ends": "no route for other: buried at its first failure",
    },
}


async def test_a_key_is_tried(client: httpx2.AsyncClient) -> None:
    await client.put(f"{PATH}/order.%23", json={"max_retries": 2})
    for key, expected in TRIED.items():
        found = (await client.get(f"{PATH}/test", params={"key": key})).json()
        assert {name: found[name] for name in expected} == expected


async def test_a_route_may_be_named_like_the_trial(client: httpx2.AsyncClient) -> None:
    problem(await client.get(f"{PATH}/test"), 404)
    made = await client.put(f"{PATH}/test", json={"max_retries": 2})
    assert made.status_code == 201
    shown = await client.get(f"{PATH}/test")
    assert (shown.json(), shown.headers["etag"]) == (made.json(), made.headers["etag"])
    tried = (await client.get(f"{PATH}/test", params={"key": "test"})).json()
    assert (tried["route"], len(tried["steps"])) == ("test", 2)
    seen = {"If-Match": shown.headers["etag"]}
    changed = await client.put(f"{PATH}/test", json={"max_retries": 1}, headers=seen)
    assert changed.status_code == 200
    seen = {"If-Match": changed.headers["etag"]}
    assert (await client.delete(f"{PATH}/test", headers=seen)).status_code == 204


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a", {"delays": ["11s"]}),
        ("a", {"delays": ["soon"]}),
        ("a", {"delays": ["999999999d999999999d"]}),
        ("a", {"max_retries": -2}),
        ("a", {"max_retries": 2**31}),
        ("a", {"return_to": "sender"}),
        ("a", {"name": "b"}),
        ("a%00b", {}),
        ("x" * 256, {}),
        ("é" * 200, {}),
    ],
)
async def test_what_cannot_be_a_route(
    door: httpx2.AsyncClient, name: str, body: dict[str, object]
) -> None:
    problem(await door.put(f"{PATH}/{name}", json=body), 422)
    assert await names(door) == [("payment.*", "settings")]


async def test_rows_that_say_nonsense_are_shown_with_a_complaint(
    client: httpx2.AsyncClient, book: Book, database_url: str
) -> None:
    value = "'soon'" if is_sqlite(database_url) else "-7"
    await run_sql(
        database_url,
        f"INSERT INTO dlq_event_config (name, max_retries, delays) VALUES ('a', {value}, 'soon')",
    )
    await run_sql(database_url, "INSERT INTO dlq_event_config (name) VALUES (NULL)")
    items = (await client.get(PATH)).json()["items"]
    odd = next(item for item in items if item["name"] == "a")
    assert (len(odd["complaints"]), odd["max_retries"], odd["delays"]) == (2, None, [])
    nameless = next(item for item in items if item["name"] is None)
    assert "has no name" in nameless["complaints"][0]
