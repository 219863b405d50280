"""Acknowledgements: one for an unbroken row, never for a letter that is not done, none twice."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from service.core.plan import Settle
from service.edge.wire.window import Stage, Window


class Desk:
    """As much of a consumer as a window needs: it notes what it is told."""

    def __init__(self) -> None:
        self.connection = SimpleNamespace(loop=asyncio.get_running_loop())
        self.told: list[tuple[str, int]] = []

    def acknowledge(self, tag: int, *, upto: bool) -> None:
        """One, or all up to it."""
        self.told.append(("upto" if upto else "one", tag))

    def reject(self, tag: int, *, requeue: bool) -> None:
        """Given back, or up."""
        self.told.append(("requeue" if requeue else "reject", tag))


@pytest.fixture
async def window() -> Window:
    """Five letters, none done."""
    window = Window(cast(Any, Desk()))
    for tag in range(1, 6):
        job = SimpleNamespace(delivered=SimpleNamespace(tag=tag), stage=Stage.WORKING)
        window.jobs.append(cast(Any, job))
    return window


async def told(window: Window, *tags: int, how: Settle = Settle.ACK) -> list[tuple[str, int]]:
    """Finish these letters in one turn; what the broker is told then."""
    jobs = {job.delivered.tag: job for job in window.jobs}
    desk = cast(Desk, window.consumer)
    desk.told = []
    for tag in tags:
        window.finish(jobs[tag], how)
    await asyncio.sleep(0)
    return desk.told


async def test_an_unbroken_row_is_one_acknowledgement(window: Window) -> None:
    assert await told(window, 1, 2, 3) == [("upto", 3)]
    assert await told(window, 5) == []
    assert await told(window, 4) == [("upto", 5)]
    assert not window.jobs


async def test_what_is_behind_an_unfinished_letter_waits(window: Window) -> None:
    assert await told(window, 2, 3) == []
    assert await told(window, 1) == [("upto", 3)]


async def test_a_held_letter_holds_nobody_up(window: Window) -> None:
    window.jobs[0].stage = Stage.HELD
    assert await told(window, 2, 4) == [("one", 2), ("one", 4)]
    assert await told(window, 3) == [("one", 3)]
    assert await told(window, 1) == [("upto", 1)]  # 4 is settled: its tag is no longer known
    assert await told(window, 5) == [("upto", 5)]


async def test_letters_that_go_back_are_settled_by_themselves(window: Window) -> None:
    assert await told(window, 2, how=Settle.REQUEUE) == [("requeue", 2)]
    assert await told(window, 1) == [("upto", 1)]
    assert await told(window, 3, how=Settle.REJECT) == [("reject", 3)]
    assert [job.delivered.tag for job in window.jobs] == [4, 5]


async def test_what_is_settled_behind_a_held_letter_is_let_go(window: Window) -> None:
    """Or one held letter would keep every letter after it in memory."""
    window.jobs[0].stage = Stage.HELD
    assert await told(window, 2, 3, 5) == [("one", 2), ("one", 3), ("one", 5)]
    assert [job.delivered.tag for job in window.jobs] == [1, 4]
    assert await told(window, 1, 4) == [("upto", 4)]
    assert not window.jobs
