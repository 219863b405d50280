"""Trying a verb again: two transactions that wait for each other are nobody's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.ledger.away import LedgerAway

T = TypeVar("T")

CLASHES = frozenset({"40P01", "40001"})  # a deadlock, a serialization that failed
PAUSES = (0.02, 0.05, 0.1, 0.3, 1.0)


async def again(verb: Callable[[], Awaitable[T]]) -> T:
    """Do it; where PostgreSQL chose this transaction to give way, do it anew, a few times."""
    for pause in PAUSES:
        try:
            return await verb()
        except LedgerAway as away:
            if not _is_clash(away):
                raise
        await asyncio.sleep(pause)
    return await verb()


def _is_clash(error: BaseException | None) -> bool:
    """Whether the driver's own error, somewhere below, is a clash."""
    while error is not None:
        if getattr(error, "sqlstate", None) in CLASHES:
            return True
        error = error.__cause__
    return False
