"""The desk on the wire lane: the same count, judge, plan and words as the desk's, on letters as bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from service.core.delivery import Delivery, Envelope, without_origin
from service.core.judge import judge
from service.core.outcome import Refused
from service.core.pattern import Pattern
from service.core.plan import Plan, plan
from service.core.policy import Policy
from service.core.verdict import Verdict, Why
from service.edge.listeners import Listeners
from service.edge.reading import Limits, too_large
from service.edge.wire.delivered import Delivered
from service.edge.wire.job import Errand
from service.edge.wire.parcel import Parcel
from service.flows.desk import Clock, utc_now
from service.flows.flow import Flow


@dataclass(frozen=True, slots=True)
class WireDesk:
    """A clerk for one queue of a flow: `work` says what becomes of a letter."""

    flow: Flow
    limits: Limits
    listeners: Listeners
    work: Callable[[WireDesk, Envelope, Parcel], Errand]
    clock: Clock = utc_now

    def attend(self, delivered: Delivered) -> Errand:
        """The verdict on a letter, as a plan."""
        parcel = Parcel(delivered, self.limits.max_headers)
        return self.work(self, self._envelope(delivered, parcel), parcel)

    def stumbled(self, delivered: Delivered, bug: Exception) -> Errand:
        """A letter on which our own code stumbled goes to people: it must not hold up the others."""
        parcel = Parcel(delivered, self.limits.max_headers)
        reason = f"our own fault: {type(bug).__name__}: {bug}"
        lost = without_origin(self._envelope(delivered, parcel), self.flow.name, reason)
        return self.conclude(lost.ended(Refused(reason, Why.OUR_FAULT)), parcel)

    def taken_back(self, letters: int, why: str) -> None:
        """The broker took back so many letters before they were settled."""
        self.listeners.unsettled(self.flow.name, f"{why} ({letters} in hand)")

    def fault_in(self, parcel: Parcel) -> Refused | None:
        """Why no attempt should be made with this letter: it is absurd, or too large."""
        return too_large(parcel.body, self.limits) or parcel.fault

    def policy(self, delivery: Delivery) -> Policy:
        """The policy under which a delivery is judged."""
        return self.flow.policy(delivery.origin.routing_key)

    def conclude(self, delivery: Delivery, parcel: Parcel) -> Errand:
        """Judge, and tell when it is carried out."""
        return self.judged(delivery, parcel)[1]

    def judged(self, delivery: Delivery, parcel: Parcel) -> tuple[Verdict, Errand]:
        """The verdict, and what it asks of the lane."""
        flow = self.flow
        verdict = judge(delivery, self.policy(delivery))
        todo = plan(verdict, delivery, flow.ways, flow.seal)
        return verdict, self._errand(delivery, verdict, todo, parcel)

    def repeat(self, pattern: Pattern, envelope: Envelope, parcel: Parcel) -> Errand:
        """The verdict on a letter that failed as others did."""
        delivery, todo = pattern.another(envelope.message_id or envelope.fresh_id, envelope.at)
        return self._errand(delivery, pattern.verdict, todo, parcel)

    def _errand(self, delivery: Delivery, verdict: Verdict, todo: Plan, parcel: Parcel) -> Errand:
        name, listeners = self.flow.name, self.listeners
        return Errand(parcel, todo, lambda _: listeners.judged(name, delivery, verdict))

    def _envelope(self, delivered: Delivered, parcel: Parcel) -> Envelope:
        given = parcel.message_id or None
        where = delivered.exchange, delivered.routing_key, delivered.redelivered
        return Envelope(given, parcel.headers, given or uuid4().hex, self.clock(), *where)
