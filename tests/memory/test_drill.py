"""The drill in memory: three keys, three ends."""

from __future__ import annotations

import pytest

from service.core.route import Route
from tests.memory.office import open_office


@pytest.mark.parametrize(
    ("key", "buried", "retried"),
    [("rk.test.pass", 0, 0), ("rk.test.fail", 1, 3), ("rk.test.fail.pass", 0, 1)],
)
async def test_each_key_ends_as_its_name_says(key: str, buried: int, retried: int) -> None:
    async with open_office(Route("rk.test.#", 3)) as office:
        office.simulation.publish("test-retry-exchange", key, b'{"drill": true}')
        await office.rabbit.advance(60)
        assert len(office.dead) == buried
        assert office.witness.returned_letters == retried
        for queue in ("test-pass-queue", "test-fail-queue", "test-fail-pass-queue"):
            assert office.simulation.letters(queue) == office.simulation.unsettled(queue) == ()
        assert office.simulation.lost() == ()
