"""The central processor on the wire lane: the clerk's two jobs, without a task for each letter."""

from __future__ import annotations

from service.core.delivery import Delivery, Envelope
from service.core.plan import Plan
from service.edge.wire.job import Errand
from service.edge.wire.parcel import Parcel
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules, send_back
from service.flows.flow import Flow
from service.flows.room import Reception
from service.flows.wire_desk import WireDesk


def clerks(flow: Flow, rules: Rules, find: FindRoute, reception: Reception) -> dict[str, WireDesk]:
    """Who attends to the letters of each queue that we consume."""

    def give_back(desk: WireDesk, envelope: Envelope, parcel: Parcel) -> Errand:
        return _give_back(desk, find, envelope, parcel)

    taking = WireDesk(flow, reception.limits, reception.listeners, _take)
    giving = WireDesk(flow, reception.limits, reception.listeners, give_back)
    returned = [tables.returned_queue(n, rules.kind) for n in range(1, len(rules.tiers) + 1)]
    return {tables.retry_queue(rules.kind).name: taking} | {q.name: giving for q in returned}


def _take(desk: WireDesk, envelope: Envelope, parcel: Parcel) -> Errand:
    """A letter that was dead-lettered to us: how it ended, the broker has written down."""
    delivery = desk.flow.count(envelope)
    fault = desk.fault_in(parcel)
    return desk.conclude(delivery if fault is None else delivery.ended(fault), parcel)


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
