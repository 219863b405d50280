"""The service's link to RabbitMQ fails in mid-flow: nothing is lost, and it moves again in seconds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.office import PREFETCH, before, office
from tests.crash.traffic import Traffic, ending, traffic
from tests.kit.process import Service
from tests.servers.proxy import Proxy

LETTERS = 400
RESUMES = 5.0
CONSUMERS = 4  # retry-queue and three tiers, each with its own prefetch
IN_HAND = PREFETCH * CONSUMERS
POST = 1  # the service opens first the connection that declares, then the one that publishes
# `just slow`: the long versions.
SILENCE, RESETS = (60, 50) if os.environ.get("DLO_TEST_SLOW") else (9, 6)
IMPATIENT = {"DLO_RABBIT__HEARTBEAT": "1s", "DLO_RABBIT__PUBLISH_TIMEOUT": "2s"}
# The heart stops before the publish gives up.
PATIENT = {"DLO_RABBIT__HEARTBEAT": "1s", "DLO_RABBIT__PUBLISH_TIMEOUT": "30s"}


@dataclass(frozen=True)
class Scene:
    """Letters in mid-flow through a link that can fail."""

    letters: Traffic
    service: Service
    proxy: Proxy

    async def resumes(self, most: int) -> None:
        """Heal the link: letters move again in time, each comes home, with at most so many copies."""
        self.proxy.heal()
        took = await self.letters.passes(20, within=RESUMES)
        report = await self.letters.ends(self.service)
        print(f"resumed after {took:.2f} s: {report}")
        report.demand(most)


@asynccontextmanager
async def in_mid_flow(
    rabbit_url: str, database_url: str, folder: Path, settings: dict[str, str]
) -> AsyncIterator[Scene]:
    """The service behind a proxy, when its first letters have moved."""
    async with (
        before(rabbit_url) as (proxy, through),
        traffic(rabbit_url) as letters,
        ending(office(through, database_url, folder, **settings)) as service,
    ):
        await service.start()
        await letters.send(LETTERS)
        await letters.moves(upto=20)
        yield Scene(letters, service, proxy)


async def test_a_short_silence_is_waited_out(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    async with in_mid_flow(rabbit_url, sqlite_url, tmp_path, {}) as scene:
        scene.proxy.black_hole()
        await asyncio.sleep(2)  # shorter than the publish time-out and the heartbeat
        await scene.resumes(most=0)


async def test_a_long_silence_ends_the_connections(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    async with in_mid_flow(rabbit_url, sqlite_url, tmp_path, IMPATIENT) as scene:
        scene.proxy.black_hole()
        await asyncio.sleep(SILENCE)  # longer than three heartbeats: the links are given up
        # What was sent again into the silence arrives with the rest when it ends.
        await scene.resumes(most=5 * IN_HAND)


@pytest.mark.parametrize("settings", [IMPATIENT, PATIENT], ids=["impatient", "patient"])
async def test_only_the_publishing_connection_falls_silent(
    rabbit_url: str, sqlite_url: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    async with in_mid_flow(rabbit_url, sqlite_url, tmp_path, settings) as scene:
        scene.proxy.black_hole_for(POST)
        # Nothing is healed: the service finds out by itself and takes another connection.
        took = await scene.letters.passes(20, within=20)
        print(f"another connection after {took:.2f} s")
        await scene.resumes(most=2 * IN_HAND)


async def test_only_the_publishing_connection_is_reset(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    async with in_mid_flow(rabbit_url, sqlite_url, tmp_path, {}) as scene:
        scene.proxy.reset_only(POST)
        await scene.resumes(most=IN_HAND)


async def test_connections_that_are_reset_again_and_again(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    async with in_mid_flow(rabbit_url, sqlite_url, tmp_path, {}) as scene:
        slowest = 0.0
        for number in range(RESETS):
            scene.proxy.cut_in_mid_frame() if number % 2 else scene.proxy.reset()
            slowest = max(slowest, await scene.letters.passes(50, within=RESUMES))
        print(f"{RESETS} resets, the slowest return {slowest:.2f} s")
        await scene.resumes(most=RESETS * IN_HAND)


async def test_a_slow_link_is_only_slow(rabbit_url: str, sqlite_url: str, tmp_path: Path) -> None:
    async with in_mid_flow(rabbit_url, sqlite_url, tmp_path, {}) as scene:
        scene.proxy.delay(0.05)
        await scene.letters.passes(100, within=30)
        await scene.resumes(most=0)
