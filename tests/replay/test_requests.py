"""The requests of `/api/v1/replays`, asked in memory; and the look at queues that the plan needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from deploy.local.ports import free_port
from service.core.replay import Terms
from service.core.standing import Absent, Sight, Standing, Unseen
from service.edge.looking import look_at
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.web.api import create_api
from service.web.api.replays import Runs, router
from tests.kit.broker import channel_to
from tests.kit.letters import park

PATH = "/api/v1/replays"
TERMS = Terms(rate=50, canary=1, stop_percent=10, watch=timedelta(seconds=30))
SIGHTS: dict[str, Sight] = {"billing": Absent(), "audit": Standing(7, 0), "orders": Standing(0, 2)}


class Office:
    """The router over a ledger, and what it asked of the runner."""

    def __init__(self, book: Book) -> None:
        self.book, self.woken = book, 0
        app = create_api([router(book, Runs(TERMS, self._look, self._wake, intake=False))], "1")
        transport = httpx2.ASGITransport(app)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://localhost")

    async def post(self, body: object, path: str = PATH, **headers: str) -> tuple[int, Any]:
        """A POST: status and JSON."""
        answer = await self.client.post(path, json=body, headers=headers)
        return answer.status_code, answer.json()

    async def get(self, path: str) -> tuple[int, Any]:
        """A GET: status and JSON."""
        answer = await self.client.get(path)
        return answer.status_code, answer.json()

    async def _look(self, queues: Iterable[str]) -> Mapping[str, Sight]:
        return {queue: SIGHTS.get(queue, Unseen("RabbitMQ is away")) for queue in queues}

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    """An empty ledger of either kind."""
    await upgrade(database_url)
    book = Book(database_url)
    yield Office(book)
    await book.close()


async def test_the_plan_says_everything_before_anything_is_done(office: Office) -> None:
    await park(office.book, 100)
    await park(office.book, 2, 200, origin_queue="billing")
    await park(office.book, 1, 300, origin_queue="audit")
    await park(office.book, 1, 400, origin_queue="elsewhere")
    await park(office.book, 3, 500, origin_queue="")
    status, plan = await office.post({"filter": {}, "dry_run": True, "rate": 10})
    assert status == 200
    assert (plan["total"], plan["without_origin"], plan["held"]) == (104, 3, 0)
    assert plan["duration"] == "1m10s"  # 104 / 10, and two windows of 30 s
    assert plan["terms"] == {"rate": 10, "canary": 1, "stop_percent": 10, "watch": "30s"}
    lines = {line["queue"]: line for line in plan["queues"]}
    assert [lines["orders"][k] for k in ("letters", "exists", "consumers", "ready")] == [
        *(100, True, 2, 0)
    ]
    assert lines["elsewhere"]["exists"] is None
    assert lines["elsewhere"]["says"] == "unknown: RabbitMQ is away"
    told = "\n".join(plan["warnings"])
    for word in ("no queue billing", "nobody consumes audit", "3 letters died", "intake is off"):
        assert word in told
    assert (await office.get(PATH))[1] == {"items": [], "next": None}
    assert office.woken == 0


async def test_an_empty_plan_is_a_plan(office: Office) -> None:
    status, plan = await office.post({"filter": {}, "dry_run": True})
    assert (status, plan["total"], plan["queues"], plan["duration"]) == (200, 0, [], "0s")


async def test_a_job_is_made_shown_listed_and_stopped(office: Office) -> None:
    await park(office.book, 3)
    answer = await office.client.post(PATH, json={"filter": {"origin_queue": "orders"}})
    job = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"{PATH}/{job['id']}")
    assert (job["state"], job["total"], job["letters"]) == ("waiting", 3, {"pending": 3})
    assert (job["filter"], job["target"], job["who"]) == ({"origin_queue": "orders"}, None, "local")
    assert (await office.get(f"{PATH}/{job['id']}"))[1] == job
    assert (await office.get(f"{PATH}?state=waiting"))[1]["items"][0]["id"] == job["id"]
    assert (await office.get(f"{PATH}?state=finished"))[1]["items"] == []
    _, page = await office.get(f"{PATH}/{job['id']}/letters?limit=2")
    assert [line["position"] for line in page["items"]] == [1, 2]
    _, page = await office.get(f"{PATH}/{job['id']}/letters?limit=2&cursor={page['next']}")
    assert ([line["position"] for line in page["items"]], page["next"]) == ([3], None)
    for verb, wanted in (("pause", "pause"), ("resume", "run"), ("stop", "stop")):
        status, job = await office.post({"why": "because"}, f"{PATH}/{job['id']}/{verb}")
        assert (status, job["wanted"]) == (202, wanted)
    assert office.woken == 4


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"filter": {"nonsense": 1}}, 422),
        ({"filter": {}, "rate": 0}, 422),
        ({"filter": {}, "rate": "NaN"}, 422),
        ({"filter": {}, "canary": -1}, 422),
        ({"filter": {}, "watch": "soon"}, 422),
        ({"filter": {}, "watch": "2d"}, 422),
        ({"filter": {}, "stop_percent": 101}, 422),
        ({"filter": {}, "target": "nul \x00"}, 422),
        ({"filter": {}, "target": "ü" * 200}, 422),
        ({"filter": {}, "attempts": "many"}, 422),
        ({"filter": {}, "more": 1}, 422),
        ({"filter": {}}, 409),
        ({"filter": {"text": "' OR 1=1 --"}}, 409),
    ],
)
async def test_what_cannot_be_done_is_a_problem_with_a_hint(
    office: Office, body: dict[str, Any], status: int
) -> None:
    given, problem = await office.post(body)
    assert (given, problem["status"]) == (status, status)
    assert problem["hint"]


async def test_unknown_and_ended_jobs(office: Office) -> None:
    for id_ in ("0" * 16, "nonsense", "%00"):
        assert (await office.get(f"{PATH}/{id_}"))[0] == 404
        assert (await office.get(f"{PATH}/{id_}/letters"))[0] == 404
        assert (await office.post({}, f"{PATH}/{id_}/stop"))[0] == 404
    assert (await office.get(f"{PATH}?cursor=nonsense"))[0] == 422


async def test_the_same_key_is_the_same_job(office: Office) -> None:
    await park(office.book, 1)
    key = {"Idempotency-Key": "one"}
    clicks = await asyncio.gather(*(office.post({"filter": {}}, **key) for _ in range(4)))
    assert len({job["id"] for _, job in clicks}) == 1
    assert {status for status, _ in clicks} == {202}
    status, problem = await office.post({"filter": {}, "canary": 0}, **key)
    assert (status, problem["title"]) == (409, "The Idempotency-Key is taken")


async def test_queues_are_looked_at_and_not_touched(rabbit_url: str) -> None:
    async with channel_to(rabbit_url) as channel:
        await channel.declare_queue("looked-at", auto_delete=False, arguments={"x-max-length": 5})
        mine = await channel.declare_queue("mine", exclusive=True)
        seen = await look_at(rabbit_url, ["nowhere", "looked-at", "mine", "ö" * 200])
        assert seen["nowhere"] == Absent()
        assert seen["looked-at"] == Standing(0, 0)
        assert isinstance(seen[mine.name], Unseen)
        assert isinstance(seen["ö" * 200], Unseen), "no queue can have such a name"
        await channel.queue_delete("looked-at")


async def test_a_broker_that_is_away_costs_the_plan_little_time() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    seen = await look_at(f"amqp://guest:guest@127.0.0.1:{free_port()}/", ["orders"])
    assert loop.time() - before < 3
    (sight,) = seen.values()
    assert isinstance(sight, Unseen)
    assert sight.why.startswith("RabbitMQ is away: ")
