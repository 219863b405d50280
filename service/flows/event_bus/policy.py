"""The event bus as a flow: the broker counts, retries by rejecting, burials by publishing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from faststream.rabbit import QueueType

from service.core import marks as names
from service.core.delivery import Delivery, Envelope, in_hand
from service.core.history import Death, rejection
from service.core.marks import MarkValue, Seal, shorten
from service.core.outcome import Failed, Refused
from service.core.plan import Address, Moved, Publish, Reject, Ways
from service.core.policy import Policy
from service.flows.event_bus import topology as tables
from service.flows.flow import Flow

NAME = "event_bus"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about every service of this flow."""

    max_retries: int
    retry_after: timedelta
    kind: QueueType = QueueType.CLASSIC


def flow(service: str, rules: Rules, seal: Seal) -> Flow:
    """The five answers for one service's queue."""
    policy = Policy((rules.retry_after,), rules.max_retries)

    def count(envelope: Envelope) -> Delivery:
        return count_in(tables.work_name(service), envelope, seal)

    topology = tables.tables((service,), rules.retry_after, rules.kind)
    return Flow(NAME, count, lambda _key: policy, ways(service), topology, seal)


def count_in(queue: str, envelope: Envelope, seal: Seal) -> Delivery:
    """Our mark of a letter that we sent ourselves, and the rejections that the broker counted since."""
    death = rejection(envelope.headers, queue) if _came_around(envelope, queue) else None
    if death is None:
        return in_hand(envelope, NAME, seal, queue)
    delivery = in_hand(_as_it_came_first(envelope, death), NAME, seal, queue, more=death.count)
    marks = replace(delivery.marks, deaths={death.reason: delivery.retries})
    return replace(delivery, marks=marks, at=envelope.at)


def ways(service: str) -> Ways:
    """The broker owns the cycle, so that it holds whatever becomes of us; a wait that spends no attempt
    must be sent instead, because every rejection counts."""
    waiting = Address(tables.retry_exchange(service).name, tables.RETRY_KEY)
    dead = Address("", tables.dead_name(service))
    return Ways(
        retry=Reject(),
        bury=Publish(lambda *_: dead, also=final_marks),
        defer=Publish(lambda *_: waiting),
    )


def final_marks(delivery: Delivery, _verdict: Moved) -> Mapping[str, MarkValue]:
    """How it ended, under the names that the document gives these headers."""
    final: dict[str, MarkValue] = {names.FINAL_RETRIES: delivery.retries}
    match delivery.outcome:
        case Failed(error=error, status=status) | Refused(error=error, status=status):
            final[names.FINAL_ERROR] = shorten(error)
            return final if status is None else {**final, names.FINAL_STATUS: status}
        case _:
            return final


def _came_around(envelope: Envelope, queue: str) -> bool:
    """Whether it came as the retry queue sends. A letter fresh from the main exchange was never rejected
    here: an `x-death` on it was copied by whoever published it."""
    return (envelope.exchange, envelope.routing_key) == ("", queue)


def _as_it_came_first(envelope: Envelope, death: Death) -> Envelope:
    """The address that the producer used, and the time of the first failure: the broker wrote both down."""
    since = death.since or envelope.at
    return replace(envelope, exchange=death.exchange, routing_key=death.routing_key, at=since)
