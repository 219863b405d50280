"""`kill -9` of the service, again and again while letters move: none is lost, few come twice."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from tests.crash.checker import Report
from tests.crash.office import PREFETCH, office
from tests.crash.traffic import ending, traffic
from tests.kit.lanes import LANE
from tests.kit.process import Service

# A long night: DLO_TEST_KILLS=150.
KILLS = int(os.environ.get("DLO_TEST_KILLS") or 10)
LETTERS_PER_KILL = 300
ACK_FIRST = (sys.executable, "-m", "tests.crash.ack_first")


@pytest.fixture
def seed() -> int:
    """Printed with every failure; `DLO_TEST_SEED` repeats a run."""
    return int(os.environ.get("DLO_TEST_SEED") or random.randrange(10**6))


async def killed_at_random(service: Service, rabbit_url: str, kills: int, seed: int) -> Report:
    """Kill and restart the service at moments chosen by the letters that have moved."""
    chance, total = random.Random(seed), kills * LETTERS_PER_KILL
    async with traffic(rabbit_url) as letters, ending(service):
        service.spawn()
        await letters.send(total)
        for _ in range(kills):
            # Enough to be the work of this life: some of the last one's is still to be counted.
            await letters.moves(upto=letters.moved + chance.randrange(50, LETTERS_PER_KILL))
            service.kill()
            service.spawn()
        report = await letters.ends(service, within=60 + kills)
        print(f"seed {seed}, {kills} kills: {report}")
        return report


@pytest.mark.parametrize(("lane", "kills"), [("wire", KILLS), ("faststream", KILLS // 2)])
async def test_no_letter_is_lost_when_the_service_is_killed(
    rabbit_url: str, sqlite_url: str, tmp_path: Path, seed: int, lane: str, kills: int
) -> None:
    service = office(rabbit_url, sqlite_url, tmp_path, **{LANE: lane})
    report = await killed_at_random(service, rabbit_url, kills, seed)
    report.demand(most=kills * PREFETCH)


async def test_the_checker_sees_what_ack_before_publish_loses(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    service = office(rabbit_url, sqlite_url, tmp_path, *ACK_FIRST)
    async with traffic(rabbit_url) as letters, ending(service):
        service.spawn()
        for _ in range(3):
            # Letters for each life: a kill may lose all that there were, and none of those moves again.
            await letters.send(3 * LETTERS_PER_KILL)
            await letters.moves(upto=letters.moved + 50)
            service.kill()
            service.spawn()
        report = await letters.ends(service)
        print(report)
        assert report.lost, report


async def test_a_polite_restart_loses_nothing_and_repeats_nothing(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    service = office(rabbit_url, sqlite_url, tmp_path)
    async with traffic(rabbit_url) as letters, ending(service):
        await service.start()
        for _ in range(2):
            await letters.send(500)
            await letters.moves(upto=letters.moved + 100)
            assert service.stop() == 0
            await service.start()
        report = await letters.ends(service)
        print(report)
        report.demand(most=0)
