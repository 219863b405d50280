"""`kill -9` of the service while it sends letters back: none is lost, few come twice, figures are true."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.replay.story import office, story
from tests.servers.waiting import eventually

KILLS = int(os.environ.get("DLO_TEST_KILLS") or 10)
PER_KILL, CLAIM, RATE = 40, 20, 200.0
ONE = ("orders",)


@pytest.fixture
def seed() -> int:
    """Printed with every failure; `DLO_TEST_SEED` repeats a run."""
    return int(os.environ.get("DLO_TEST_SEED") or random.randrange(10**6))


async def test_killed_again_and_again_while_it_sends(
    rabbit_url: str, sqlite_url: str, tmp_path: Path, seed: int
) -> None:
    chance, total = random.Random(seed), KILLS * PER_KILL
    service = office(rabbit_url, sqlite_url, tmp_path, DLO_REPLAY__CLAIM=str(CLAIM))
    async with story(service, rabbit_url) as teams:
        await service.start()
        await teams.open(ONE)
        await teams.send(total, ONE)
        await teams.parked(total)
        teams.accepts = lambda message: int(message.body) % 25 != 7  # four of a hundred fail
        job = teams.start(rate=RATE, canary=0)
        for _ in range(KILLS):
            upto = min(len(teams.replayed) + chance.randrange(1, PER_KILL), total - 1)
            await teams.sees(upto)
            service.kill()
            service.spawn()
        await eventually(service.is_ready, within=30)
        ended = await teams.ended(job, within=30)
        seen = Counter(body for _, _, body in teams.replayed)
        twice = seen.total() - len(seen)
        failing = sum(number % 25 == 7 for number in range(total))
        print(
            f"seed {seed}, {KILLS} kills: {total} letters, {twice} sent twice; {ended['letters']}"
        )
        assert len(seen) == total, "a letter was lost"
        assert twice <= KILLS * CLAIM
        assert ended["state"] == "finished"
        assert ended["letters"] == {"back": failing, "quiet": total - failing}
        assert teams.states() == {"back": failing, "quiet": total - failing}


async def test_a_polite_restart_sends_nothing_twice(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    service = office(rabbit_url, sqlite_url, tmp_path, DLO_REPLAY__CLAIM=str(CLAIM))
    async with story(service, rabbit_url) as teams:
        await service.start()
        await teams.open(ONE)
        await teams.send(200, ONE)
        await teams.parked(200)
        teams.accepts = lambda _message: True
        job = teams.start(rate=RATE, canary=0)
        await teams.sees(60)
        assert service.stop() == 0
        await service.start()
        assert (await teams.ended(job))["letters"] == {"quiet": 200}
        seen = Counter(body for _, _, body in teams.replayed)
        assert (len(seen), seen.total()) == (200, 200)
