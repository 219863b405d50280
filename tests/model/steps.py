"""A plan as the steps that carry it out, in the order of the law, and in the order that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.core.plan import Address, Plan, Settle


@dataclass(frozen=True, slots=True)
class Publish:
    """Hand a copy to the socket and wait for the broker's word."""

    to: Address


@dataclass(frozen=True, slots=True)
class End:
    """Settle the delivery."""

    how: Settle


Step = Publish | End
Reading = Callable[[Plan], tuple[Step, ...]]


def send_then_settle(plan: Plan) -> tuple[Step, ...]:
    """The law: send all, then settle once, last."""
    return (*(Publish(send.to) for send in plan.sends), End(plan.settle))


def settle_then_send(plan: Plan) -> tuple[Step, ...]:
    """The mistake: what is settled is forgotten by the broker, and not yet sent."""
    return (End(plan.settle), *(Publish(send.to) for send in plan.sends))
