"""The central processor on the wire lane: the clerk's two jobs, without a task for each letter."""

from __future__ import annotations

from service.core.delivery import Delivery, Envelope
from service.core.marks import LETTER, REPLAY
from service.core.pattern import Pattern
from service.core.plan import Plan
from service.edge.wire.job import Errand
from service.edge.wire.parcel import Parcel
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules, send_back
from service.flows.flow import Flow
from service.flows.room import Reception
from service.flows.wire_desk import WireDesk

MOST_PATTERNS, LONGEST_HISTORY = 1024, 1024
Patterns = dict[bytes, Pattern | None]
"""By the bytes of `x-death`; None for a history that was seen once."""


def clerks(flow: Flow, rules: Rules, find: FindRoute, reception: Reception) -> dict[str, WireDesk]:
    """Who attends to the letters of each queue that we consume."""
    patterns: Patterns = {}

    def take(desk: WireDesk, envelope: Envelope, parcel: Parcel) -> Errand:
        return _take(desk, patterns, envelope, parcel)

    def give_back(desk: WireDesk, envelope: Envelope, parcel: Parcel) -> Errand:
        return _give_back(desk, find, envelope, parcel)

    taking = WireDesk(flow, reception.limits, reception.listeners, take)
    giving = WireDesk(flow, reception.limits, reception.listeners, give_back)
    returned = [tables.returned_queue(n, rules.kind) for n in range(1, len(rules.tiers) + 1)]
    return {tables.retry_queue(rules.kind).name: taking} | {q.name: giving for q in returned}


def _take(desk: WireDesk, patterns: Patterns, envelope: Envelope, parcel: Parcel) -> Errand:
    """A letter that was dead-lettered to us: how it ended, the broker has written down."""
    fault, history = desk.fault_in(parcel), parcel.history
    is_marked = LETTER in parcel.headers or REPLAY in parcel.headers
    if fault is not None or not history or envelope.message_id is None or is_marked:
        delivery = desk.flow.count(envelope)
        return desk.conclude(delivery if fault is None else delivery.ended(fault), parcel)
    pattern = patterns.get(history)
    if pattern is not None and pattern.policy is desk.policy(pattern.first):
        return desk.repeat(pattern, envelope, parcel)
    return _by_itself(desk, patterns, envelope, parcel)


def _by_itself(desk: WireDesk, patterns: Patterns, envelope: Envelope, parcel: Parcel) -> Errand:
    """Judge a letter; the second with the same history makes a pattern, for then there may be more."""
    delivery, history = desk.flow.count(envelope), parcel.history
    verdict, errand = desk.judged(delivery, parcel)
    if len(history) > LONGEST_HISTORY:
        return errand
    if history in patterns:
        policy = desk.policy(delivery)
        patterns[history] = Pattern.of(delivery, policy, verdict, errand.plan, desk.flow.seal)
    else:
        if len(patterns) >= MOST_PATTERNS:
            patterns.clear()
        patterns[history] = None
    return errand


def _give_back(desk: WireDesk, find: FindRoute, envelope: Envelope, parcel: Parcel) -> Errand:
    """A letter whose wait is over."""
    delivery, back = send_back(envelope, desk.flow, find)
    if back is None:
        return desk.conclude(delivery, parcel)

    def tell(done: Plan) -> None:
        _tell(desk, delivery, envelope, back, done)

    return Errand(parcel, back, tell)


def _tell(desk: WireDesk, delivery: Delivery, envelope: Envelope, back: Plan, done: Plan) -> None:
    name, listeners = desk.flow.name, desk.listeners
    if done is back:
        listeners.returned(name, delivery, envelope)
    elif done is back.later:
        listeners.postponed(name, delivery)
    else:
        listeners.unreturned(name, delivery)
