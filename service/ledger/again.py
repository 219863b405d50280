"""Trying a verb again: two transactions that wait for each other are nobody's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.ledger.away import LedgerAway
from service.ledger.blame import is_clash

T = TypeVar("T")

PAUSES = (0.02, 0.05, 0.1, 0.3, 1.0)


async def again(verb: Callable[[], Awaitable[T]]) -> T:
    """Do it; where PostgreSQL chose this transaction to give way, do it anew, a few times."""
    for pause in PAUSES:
        try:
            return await verb()
        except LedgerAway as away:
            if not is_clash(away):
                raise
        await asyncio.sleep(pause)
    return await verb()
