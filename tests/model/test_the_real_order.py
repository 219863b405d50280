"""What the edge really does with a plan is what the model assumes: the same steps, in that order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aio_pika.abc import AbstractIncomingMessage

from service.core.plan import Plan, Send, Settle
from service.edge.carry_out import Means, carry_out, settle
from service.edge.letter import Letter
from service.edge.post import NotSent, Unroutable
from tests.model.steps import End, Publish, Step, send_then_settle
from tests.model.test_forward_step import BURY, ORDERS, REJECT, RETRY, RETURN

LETTER = Letter(b"", {}, {})


@dataclass
class Desk:
    """A post and a delivery that write down what is done with them."""

    faults: list[Exception] = field(default_factory=list)
    done: list[Step] = field(default_factory=list)
    channel: None = None

    async def send(self, letter: Letter, send: Send) -> None:
        """Confirmed, unless a fault is due."""
        if self.faults:
            raise self.faults.pop(0)
        self.done.append(Publish(send.to))

    async def ack(self) -> None:
        """Settled."""
        self.done.append(End(Settle.ACK))

    async def reject(self, requeue: bool) -> None:
        """Settled."""
        self.done.append(End(Settle.REQUEUE if requeue else Settle.REJECT))

    async def mend(self) -> None:
        """Nothing is broken here."""

    async def carry_out(self, todo: Plan) -> Plan:
        """The real thing."""
        message = cast(AbstractIncomingMessage, cast(Any, self))

        async def end(how: Settle) -> None:
            await settle(how, message)

        return await carry_out(todo, LETTER, Means(self, self.mend, end))


@pytest.mark.parametrize("todo", [RETRY, BURY, RETURN, REJECT, Plan(Settle.REQUEUE)])
async def test_the_edge_takes_the_steps_of_the_model(todo: Plan) -> None:
    desk = Desk()
    assert await desk.carry_out(todo) is todo
    assert tuple(desk.done) == send_then_settle(todo)


@pytest.mark.parametrize("fault", [NotSent("silence"), Unroutable("no queue")])
async def test_nothing_is_settled_before_the_send_has_come_through(fault: Exception) -> None:
    desk = Desk([fault])
    await desk.carry_out(RETRY)
    assert tuple(desk.done) == send_then_settle(RETRY)


async def test_what_nobody_takes_any_more_is_buried_instead() -> None:
    desk = Desk([Unroutable("no queue")])
    assert await desk.carry_out(RETURN) is RETURN.otherwise
    assert RETURN.otherwise is not None
    assert tuple(desk.done) == send_then_settle(RETURN.otherwise)
    assert Publish(ORDERS) not in desk.done
