"""Waiting for a service without standing in its other letters' way: seats, and a pause for all."""

from __future__ import annotations

import asyncio
from datetime import timedelta


class Seats:
    """The letters of one service that may sleep in our hands at a time: the rest must wait elsewhere."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: set[int] = set()

    def sit(self, letter: object) -> bool:
        """Whether there was a seat; the letter has it until it leaves."""
        if len(self._taken) >= self._count:
            return False
        self._taken.add(id(letter))
        return True

    def leave(self, letter: object) -> None:
        """Give up the seat, if it had one."""
        self._taken.discard(id(letter))


class Pause:
    """A time in which a service gets no deliveries: those in hand wait, and none spends an attempt."""

    def __init__(self) -> None:
        self._until = 0.0

    def prolong(self, wait: timedelta) -> None:
        """Leave the service alone for so long from now, or as long as was said before."""
        self._until = max(self._until, _now() + wait.total_seconds())

    async def over(self) -> None:
        """Return when deliveries may go on."""
        while (left := self._until - _now()) > 0:  # noqa: ASYNC110  # it may be prolonged meanwhile
            await asyncio.sleep(left)


def _now() -> float:
    return asyncio.get_running_loop().time()
