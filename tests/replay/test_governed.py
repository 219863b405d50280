"""A replay keeps to what was agreed: it stops itself, pauses, resumes, and is one job however often asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.replay.story import Story, office, story
from tests.servers.waiting import eventually

ONE = ("orders",)


@pytest.fixture
async def teams(rabbit_url: str, sqlite_url: str, tmp_path: Path) -> AsyncIterator[Story]:
    """A service with an SQLite ledger, and a team whose consumer rejects everything."""
    service = office(rabbit_url, sqlite_url, tmp_path)
    async with story(service, rabbit_url) as teams:
        await service.start()
        await teams.open(ONE)
        yield teams
        assert "Traceback" not in service.said()


async def test_still_failing_it_stops_after_the_canary_and_at_the_limit(teams: Story) -> None:
    await teams.send(300, ONE)
    await teams.parked(300)
    job = await teams.ended(teams.start(canary=2))
    assert (job["state"], job["says"]) == ("stopped", "the canary came back: 2 of 2")
    assert job["letters"] == {"back": 2, "stopped": 298}
    assert len(teams.replayed) == 2
    assert teams.states() == {"parked": 298, "back": 2}

    # Now three of ten fail, and the canary passes: it is one of those that were sent first before.
    first = {body for _, _, body in teams.replayed}
    teams.replayed.clear()

    def is_taken(body: str) -> bool:
        return body in first or int(body) % 10 not in (7, 8, 9)

    teams.accepts = lambda message: is_taken(message.body.decode())
    job = await teams.ended(teams.start(canary=1, rate=200))
    assert job["state"] == "stopped"
    assert "came back, more than 10 %" in job["says"]
    sent = len(teams.replayed)
    back = sum(not is_taken(body) for _, _, body in teams.replayed)
    assert job["letters"] == {"back": back, "quiet": sent - back, "stopped": 300 - sent}
    print(f"stopped after {sent} of 300: {job['says']}")
    # What came back is known within half a second: rate × that × 30 / (30 − 10), and a step.
    assert sent <= 200 * 0.5 * 1.5 + 60
    assert teams.states() == {"parked": 300 - sent, "back": back, "quiet": sent - back}


async def test_pause_resume_stop_and_the_double_click(teams: Story) -> None:
    await teams.send(200, ONE)
    await teams.parked(200)
    teams.accepts = lambda _message: True
    asked = {"filter": {}, "rate": 40, "canary": 0, "why": "fixed"}
    key = {"Idempotency-Key": "click"}
    clicks = [teams.tell("/api/v1/replays", asked, **key) for _ in range(3)]
    assert {status for status, _, _ in clicks} == {202}
    (id_,) = {job["id"] for _, job, _ in clicks}
    status, problem, _ = teams.tell("/api/v1/replays", {**asked, "rate": 41}, **key)
    assert (status, problem["title"]) == (409, "The Idempotency-Key is taken")

    await eventually(lambda: len(teams.replayed) >= 20)
    assert teams.tell(f"/api/v1/replays/{id_}/pause")[0] == 202
    await eventually(lambda: teams.job(id_)["state"] == "paused", within=2)
    position = len(teams.replayed)
    second = teams.start(canary=0)  # a paused job holds no queue
    await eventually(lambda: teams.job(second)["state"] in ("running", "watching"), within=3)
    assert teams.tell(f"/api/v1/replays/{second}/stop", {"why": "only a try"})[0] == 202
    await eventually(lambda: teams.job(second)["state"] == "stopped", within=2)
    assert len(teams.replayed) > position

    assert teams.tell(f"/api/v1/replays/{id_}/resume")[0] == 202
    await eventually(lambda: teams.job(id_)["state"] == "running", within=3)
    asked_at = asyncio.get_running_loop().time()
    assert teams.tell(f"/api/v1/replays/{id_}/stop")[0] == 202
    await eventually(lambda: teams.job(id_)["state"] == "stopped", within=2)
    first, other = await teams.ended(id_), await teams.ended(second)
    assert max(at for at, _, _ in teams.replayed) <= asked_at + 2
    sent = first["letters"]["quiet"] + other["letters"].get("quiet", 0)
    assert sent == len(teams.replayed) == len({body for _, _, body in teams.replayed})
    assert first["says"] == "stopped by an operator"
    status, problem, _ = teams.tell(f"/api/v1/replays/{id_}/resume")
    assert (status, problem["title"]) == (409, "The replay is over")
    deeds = [line["action"] for line in teams.ask("/api/v1/audit")["items"]]
    assert Counter(deeds) == {
        "replay.start": 2,
        "replay.pause": 1,
        "replay.resume": 1,
        "replay.stop": 2,
        "replay.stopped": 2,
    }


async def test_one_job_per_queue_and_letters_that_no_queue_takes(teams: Story) -> None:
    await teams.send(60, ONE)
    await teams.parked(60)
    teams.accepts = lambda _message: True
    nowhere = await teams.ended(teams.start(target="nowhere", canary=1))
    assert nowhere["letters"] == {"unroutable": 1, "stopped": 59}
    assert nowhere["says"] == "the canary found no queue: 1 of 1"
    assert teams.states() == {"parked": 60}
    (line,) = teams.ask(f"/api/v1/replays/{nowhere['id']}/letters?state=unroutable")["items"]
    assert line["says"] == "no queue takes queue 'nowhere'"

    first = teams.start(rate=40, canary=0)
    await eventually(lambda: teams.job(first)["state"] == "running", within=3)
    second = teams.start(canary=0)
    await eventually(lambda: first in teams.job(second)["says"], within=3)
    assert teams.job(second)["state"] == "waiting"
    plan = teams.tell("/api/v1/replays", {"filter": {}, "target": "nowhere", "dry_run": True})[1]
    assert (plan["queues"][0]["exists"], plan["held"] > 0) == (False, True)
    assert (await teams.ended(first))["letters"] == {"quiet": 60}
    skipped = await teams.ended(second)
    assert skipped["letters"] == {"skipped": skipped["total"]}
    status, problem, _ = teams.tell("/api/v1/replays", {"filter": {}})
    assert (status, problem["title"]) == (409, "There is nothing to send")
    assert teams.service.get("/readyz")[0] == 200
