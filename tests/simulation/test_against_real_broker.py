"""The simulation is trusted because it is compared: the same letters, the same ends, on a real RabbitMQ."""

from __future__ import annotations

import asyncio
import os
from uuid import uuid4

from aio_pika.abc import AbstractConnection
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from service.simulation.flavour import Flavour, flavour_of
from tests.simulation.cases import Case, World, cases
from tests.simulation.on_paper import TooBusy, on_paper
from tests.simulation.on_rabbit import compare, server_version
from tests.simulation.sightings import Sightings

EXAMPLES = int(os.environ.get("DLO_TEST_EXAMPLES", "24"))
ABREAST = 5  # cases of one example, side by side: most of their time is waiting


def test_letters_end_where_the_simulation_says(
    runner: asyncio.Runner, connection: AbstractConnection
) -> None:
    flavour = flavour_of(server_version(connection))

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=[
            Phase.generate
        ],  # a real disagreement costs a deadline each time: report, do not shrink
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(cases(), min_size=ABREAST, max_size=ABREAST))
    def all_agree(batch: list[Case]) -> None:
        worlds = [World(case, f"sim{uuid4().hex[:10]}") for case in batch]
        expected = [_expected(world, flavour) for world in worlds]
        differences = runner.run(_compare_all(connection, worlds, expected))
        for world, found in zip(worlds, differences, strict=True):
            assert not found, f"{world}\n{found}"

    all_agree()


def _expected(world: World, flavour: Flavour) -> Sightings:
    try:
        return on_paper(world, flavour)
    except TooBusy:
        assume(False)
        raise


async def _compare_all(
    connection: AbstractConnection, worlds: list[World], expected: list[Sightings]
) -> list[str]:
    async with asyncio.TaskGroup() as group:
        pairs = zip(worlds, expected, strict=True)
        tasks = [group.create_task(compare(connection, world, seen)) for world, seen in pairs]
    return [task.result() for task in tasks]
