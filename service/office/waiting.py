"""How many letters wait for their retry: the depth of the delay queues, looked at every so often."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from aiormq.exceptions import AMQPError

from service.core.duration import say
from service.edge.tap import Missing, Tap
from service.topology.arguments import time_to_live
from service.topology.tables import Topology

EVERY = 10.0
FAULTS = (AMQPError, Missing, OSError, TimeoutError, RuntimeError)

Depths = Mapping[str, float]
Tell = Callable[[Depths], None]
Looking = Callable[[], AbstractAsyncContextManager[Tap]]


def delay_queues(topology: Topology, consumed: frozenset[str]) -> Mapping[str, str]:
    """The queues in which letters only wait and then go on, and how long they wait there."""
    waits = {queue.name: time_to_live(queue) for queue in topology.queues}
    return {
        name: say(wait) for name, wait in waits.items() if wait is not None and name not in consumed
    }


async def watch(look: Looking, queues: Mapping[str, str], tell: Tell, every: float = EVERY) -> None:
    """Until cancelled; while RabbitMQ cannot be asked, nobody knows how many."""
    while queues:
        try:
            async with asyncio.timeout(10), look() as tap:
                tell(await _depths(tap, queues))
        except FAULTS:
            tell(dict.fromkeys(queues.values(), math.nan))
        await asyncio.sleep(every)


async def _depths(tap: Tap, queues: Mapping[str, str]) -> Depths:
    found: dict[str, float] = defaultdict(float)
    for queue, wait in queues.items():
        found[wait] += (await tap.depth(queue)).letters
    return found
