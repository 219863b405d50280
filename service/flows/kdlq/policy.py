"""KDLQ as flows, one per queue or topic: two counters in the letter's headers, all ways by publishing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from service.core import marks as marks_of
from service.core.delivery import Delivery, Envelope, was_sent_back
from service.core.marks import Marks, MarkValue, Origin, Seal, read, replay_in
from service.core.outcome import Done
from service.core.plan import Address, Moved, Publish, Ways
from service.core.policy import FOR_EVER, Policy
from service.core.verdict import Bury, Retry
from service.flows.flow import Flow
from service.flows.kdlq import topology as tables
from service.flows.kdlq.counters import count_in, originals
from service.flows.kdlq.status import OnException
from service.flows.kdlq.topology import Names
from service.topology.tables import Topology

NAME, KAFKA = "kdlq", "kafka"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is said of one consumer: its queues or topics, its limits, what it writes down."""

    names: Names
    marker: str
    """Which handler it is, in `KDLQ_PrcMarker`."""
    max_redeliveries: int = 3
    max_kills: int = FOR_EVER
    informational_headers: bool = False
    on_exception: OnException = OnException.KILL
    foreign: bool = True
    """Whether redeliveries of another handler are taken."""
    skipped: str | None = None
    """The queue or topic that gets a copy of what is skipped."""


def flow(rules: Rules, source: str, seal: Seal, topology: Topology | None = None) -> Flow:
    """The five answers for one queue or topic of a consumer.

    Any negative limit is none: `-1`, as the document writes it, or less.
    """
    policy = Policy(
        (rules.names.delay,),
        max(rules.max_redeliveries, FOR_EVER),
        max_burials=max(rules.max_kills, FOR_EVER),
    )

    def count(envelope: Envelope) -> Delivery:
        return counted(envelope, rules, source, seal)

    return Flow(NAME, count, lambda _key: policy, ways(rules, source), topology or Topology(), seal)


def counted(envelope: Envelope, rules: Rules, source: str, seal: Seal) -> Delivery:
    """The letter's counters as they stand on it, whoever wrote them: the document's own library does not
    sign, and a forged count only costs its letter what a fresh one has.

    Id, origin and the first failure are ours, and believed where our key signed them.
    """
    headers = envelope.headers
    redelivered = count_in(headers, marks_of.REDELIVERED)
    known = read(headers, seal)
    if isinstance(known, Marks) and _is_same(known, envelope):
        marks = replace(known, retries=redelivered)
    else:
        # A topic is no queue: nobody shall send a letter of Kafka to a queue that has its name.
        place = f"{KAFKA}:{source}" if _is_kafka(envelope) else source
        here = Origin(place, envelope.exchange, envelope.routing_key)
        letter = envelope.message_id or envelope.fresh_id
        marks = Marks(letter, NAME, here, redelivered, envelope.at, replay=replay_in(headers))
    carries = originals(headers, envelope.place) if rules.informational_headers else {}
    kills = count_in(headers, marks_of.KILLS)
    # Nothing is ever sent back to Kafka, and its post has no receipts.
    is_replay = not _is_kafka(envelope) and was_sent_back(marks, envelope, source, seal)
    return Delivery(marks, Done(), envelope.at, is_replay, kills, carries)


def ways(rules: Rules, source: str) -> Ways:
    """Where copies go is said by the settings alone: no header of a letter chooses it."""
    target = rules.names.again(source)
    again = tables.address(tables.wait_name(target) if rules.names.delay else target)

    def stamped(delivery: Delivery, verdict: Moved) -> Mapping[str, MarkValue]:
        return kdlq_marks(delivery, verdict, rules.marker)

    def publish(to: Address) -> Publish:
        return Publish(lambda *_: to, also=stamped)

    return Ways(
        retry=publish(again),
        bury=publish(tables.address(rules.names.dlq)),
        discard=publish(tables.address(rules.skipped)) if rules.skipped else None,
    )


def kdlq_marks(delivery: Delivery, verdict: Moved, marker: str) -> dict[str, MarkValue]:
    """The document's headers for a copy; a counter that never counted is not written."""
    redelivered = verdict.number if isinstance(verdict, Retry) else delivery.retries
    kills = delivery.kills + 1 if isinstance(verdict, Bury) else delivery.kills
    counters = {marks_of.REDELIVERED: redelivered, marks_of.KILLS: kills}
    counted = {name: count for name, count in counters.items() if count}
    return {**counted, marks_of.MARKER: marker, **delivery.carries}


def _is_kafka(envelope: Envelope) -> bool:
    return "offset" in envelope.place


def _is_same(marks: Marks, envelope: Envelope) -> bool:
    return marks.flow == NAME and envelope.message_id in (None, marks.letter)
