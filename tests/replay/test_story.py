"""Dead letters of four causes are sent back through the real processor; the figures are what was seen."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from aio_pika.abc import AbstractIncomingMessage

from service.ledger.schema import upgrade
from tests.replay.story import TEAMS, Story, office, story

# The whole story: DLO_TEST_REPLAY=10000.
LETTERS = int(os.environ.get("DLO_TEST_REPLAY") or 200)
RATE = 200.0


def accept_all(_message: AbstractIncomingMessage) -> bool:
    """The bug is fixed."""
    return True


async def test_all_come_home(rabbit_url: str, postgres_url: str, tmp_path: Path) -> None:
    await upgrade(postgres_url)
    service = office(rabbit_url, postgres_url, tmp_path)
    async with story(service, rabbit_url) as teams:
        await service.start()
        await teams.open()
        await teams.send(LETTERS)
        await teams.parked(LETTERS, within=30 + LETTERS / 200)
        causes = teams.ask("/api/v1/causes")["items"]
        assert [cause["open"] for cause in causes] == [LETTERS // 4] * 4

        _plan_is_right(teams)
        teams.accepts = accept_all
        jobs = [teams.start(filter={"cause": cause["id"]}, rate=RATE) for cause in causes]
        within = 30 + LETTERS / RATE * 4
        ended = [await teams.ended(job, within) for job in jobs]

        assert [job["state"] for job in ended] == ["finished"] * 4
        assert [job["letters"] for job in ended] == [{"quiet": LETTERS // 4}] * 4
        seen = Counter(body for _, _, body in teams.replayed)
        assert len(seen) == seen.total() == LETTERS == teams.handled.total()
        assert Counter(queue for _, queue, _ in teams.replayed) == dict.fromkeys(
            TEAMS, LETTERS // 4
        )
        assert teams.states() == {"quiet": LETTERS}
        busiest = _busiest_second(teams)
        print(f"{LETTERS} letters; the busiest second of a queue had {busiest}")
        assert busiest <= RATE * 1.2 + 1
        metrics = str(service.get("/metrics")[1])
        assert f'dlo_replayed_letters_total{{outcome="quiet"}} {float(LETTERS)}' in metrics


def _plan_is_right(teams: Story) -> None:
    status, plan, _ = teams.tell("/api/v1/replays", {"filter": {}, "dry_run": True})
    assert status == 200
    assert (plan["total"], plan["without_origin"], plan["held"]) == (LETTERS, 0, 0)
    for line in plan["queues"]:
        assert (line["letters"], line["exists"], line["consumers"]) == (LETTERS // 4, True, 1)
    assert [line["queue"] for line in plan["queues"]] == sorted(TEAMS)
    assert len(plan["still_arriving"]) == 4
    assert teams.ask("/api/v1/replays")["items"] == []


def _busiest_second(teams: Story) -> int:
    """The most deliveries that one queue saw within a second."""
    most = 0
    for name in TEAMS:
        moments = sorted(at for at, queue, _ in teams.replayed if queue == name)
        first = 0
        for last, at in enumerate(moments):
            while moments[first] <= at - 1:
                first += 1
            most = max(most, last - first + 1)
    return most
