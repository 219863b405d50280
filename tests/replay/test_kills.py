"""`kill -9` of the service while it sends letters back: none is lost, few come twice, figures are true."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.replay.story import Story, office, story

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
    chance, total = random.Random(seed), (2 * KILLS + 3) * PER_KILL
    service = office(rabbit_url, sqlite_url, tmp_path, DLO_REPLAY__CLAIM=str(CLAIM))
    async with story(service, rabbit_url) as teams:
        await service.start()
        await teams.open(ONE)
        await teams.send(total, ONE)
        await teams.parked(total)
        teams.accepts = lambda message: int(message.body) % 25 != 7  # four of a hundred fail
        # Three of those four may be among the first twenty: the job would stop itself at the usual share.
        job = teams.start(rate=RATE, canary=0, stop_percent=50)
        for _ in range(KILLS):
            await teams.sees(len(teams.replayed) + chance.randrange(1, PER_KILL))
            service.kill()
            service.spawn()
        await teams.sees(len(teams.replayed) + CLAIM + 1)  # what was in doubt is behind us
        twice = _copies(teams)
        assert service.stop() == 0
        await service.start()
        ended = await teams.ended(job, within=30)
        assert _copies(teams) == twice, "a polite restart sends nothing twice"
        seen = Counter(body for _, _, body in teams.replayed)
        failing = sum(number % 25 == 7 for number in range(total))
        print(
            f"seed {seed}, {KILLS} kills: {total} letters, {twice} sent twice; {ended['letters']}"
        )
        assert len(seen) == total, "a letter was lost"
        assert twice <= KILLS * CLAIM
        assert ended["state"] == "finished"
        assert ended["letters"] == {"back": failing, "quiet": total - failing}
        assert teams.states() == {"back": failing, "quiet": total - failing}


def _copies(teams: Story) -> int:
    """How often a letter was sent that had been sent before."""
    return len(teams.replayed) - len({body for _, _, body in teams.replayed})
