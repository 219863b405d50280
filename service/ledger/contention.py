"""Two transactions in each other's way: the one that PostgreSQL gives up is done again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.ledger.away import LedgerAway

T = TypeVar("T")
IN_THE_WAY = frozenset({"40P01", "40001"})  # a deadlock, a serialization failure
TRIES = 5


async def until_alone(verb: Callable[[], Awaitable[T]]) -> T:
    """Carry a verb out; again, a few times, where another transaction was in its way."""
    for number in range(1, TRIES):
        try:
            return await verb()
        except LedgerAway as away:
            if not _is_contention(away):
                raise
            await asyncio.sleep(0.02 * number)
    return await verb()


def _is_contention(away: LedgerAway) -> bool:
    return any(getattr(error, "sqlstate", None) in IN_THE_WAY for error in causes(away))


def causes(error: BaseException) -> list[BaseException]:
    """An error, and those that it was raised from."""
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and len(found) < 10:
        found.append(step)
        step = step.__cause__
    return found
