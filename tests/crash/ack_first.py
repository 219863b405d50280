"""The service with its one law broken: it acknowledges, then publishes. The checker must see it.

`python -m tests.crash.ack_first --host … --port …`
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from service.core.plan import Plan
from service.edge.carry_out import Means
from service.edge.letter import Letter
from service.edge.wire.job import Job
from service.edge.wire.relay import Relay
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


def wire_ack_first(relay: Relay, job: Job, plan: Plan) -> None:
    """The same on the wire lane."""
    window, send = job.window, relay._next
    job.plan = replace(plan, sends=())
    send(job)
    if plan.sends and job.errand is not None:
        (first,), parcel = plan.sends, job.errand.parcel
        properties = parcel.dressed(first.marks, relay._posting.room)
        window.consumer.connection.loop.call_later(
            NETWORK, relay._posting.send, first.to, properties, parcel.body, lambda _fate: None
        )


if __name__ == "__main__":
    Relay._carry_out = wire_ack_first  # type: ignore[method-assign,assignment]
    desk.carry_out = ack_first  # type: ignore[attr-defined]  # imported there by name
    run(*sys.argv[1:])
