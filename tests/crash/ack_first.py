"""The service with its one law broken: it acknowledges, then publishes. The checker must see it.

`python -m tests.crash.ack_first --host … --port …`
"""

from __future__ import annotations

import asyncio
import sys

from service.core.plan import Plan
from service.edge.carry_out import Means
from service.edge.letter import Letter
from service.flows import desk
from tests.crash.running import run

NETWORK = 0.01  # what lies between two machines, and on loopback does not


async def ack_first(plan: Plan, letter: Letter, means: Means) -> Plan:
    """Settle, then send: the order that loses letters."""
    await means.settle(plan.settle)
    await asyncio.sleep(NETWORK)
    for send in plan.sends:
        await means.post.send(letter, send)
    return plan


if __name__ == "__main__":
    desk.carry_out = ack_first  # type: ignore[attr-defined]  # imported there by name
    run(*sys.argv[1:])
