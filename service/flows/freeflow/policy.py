"""FreeFlow as flows, one per domain: count by our own mark, the three tiers, both ways by publishing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from faststream.rabbit import QueueType, RabbitQueue

from service.core.delivery import Delivery, Envelope, in_hand
from service.core.duration import parse, say
from service.core.marks import Marks, Seal, read
from service.core.outcome import Failed, Outcome, TooEarly
from service.core.plan import Address, Moved, Publish, Ways
from service.core.policy import Policy
from service.core.route import ReturnTo
from service.core.verdict import Retry
from service.flows.flow import Flow
from service.flows.freeflow import topology as tables
from service.topology.tables import Topology

NAME = "freeflow"
DOCUMENTED = tuple(parse(tier) for tier in tables.TIERS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about this flow: how long the tiers 30s, 5m, 30m really are, how often
    a letter is retried, and whether it returns through the main exchange or to its queue alone."""

    waits: tuple[timedelta, ...] = DOCUMENTED
    max_retries: int = len(DOCUMENTED)
    return_to: ReturnTo = ReturnTo.EXCHANGE
    kind: QueueType = QueueType.CLASSIC

    @property
    def topology(self) -> Topology:
        """Everything the flow declares."""
        return tables.tables(self.waits, self.kind, self.return_to)

    def queue(self, domain: str) -> RabbitQueue:
        """The queue of a domain, as it must be declared."""
        if domain not in tables.DOMAINS:
            raise LookupError(f"there is no domain {domain}: {', '.join(tables.DOMAINS)}")
        return tables.domain_queue(domain, self.kind)

    def flows(self, seal: Seal) -> Mapping[str, Flow]:
        """The flow of each queue that handlers consume."""
        return {tables.queue_name(domain): flow(domain, self, seal) for domain in tables.DOMAINS}


def flow(domain: str, rules: Rules, seal: Seal) -> Flow:
    """The five answers for one domain."""
    policy = Policy(rules.waits, rules.max_retries)

    def count(envelope: Envelope) -> Delivery:
        first = as_first_sent(envelope, domain, seal)
        return in_hand(first, NAME, seal, tables.queue_name(domain))

    return Flow(NAME, count, lambda _key: policy, ways(domain, rules), rules.topology, seal)


def ways(domain: str, rules: Rules) -> Ways:
    """Retries go to the queue of their tier, burials to the dead letters."""

    def wait(_delivery: Delivery, verdict: Moved) -> Address:
        assert isinstance(verdict, Retry)
        return tables.retry_address(domain, tables.TIERS[rules.waits.index(verdict.after)])

    return Ways(retry=Publish(wait), bury=Publish(lambda *_: tables.dead_address(domain)))


def as_first_sent(envelope: Envelope, domain: str, seal: Seal) -> Envelope:
    """A letter that is back as `<domain>.retry` under the address it was first sent to.

    Every queue that is bound to the domain gets it; where it did not fail its count is not ours to
    take over, but its address is the same.
    """
    if envelope.routing_key != tables.returned_key(domain):
        return envelope
    known = read(envelope.headers, seal)
    if not isinstance(known, Marks) or known.flow != NAME:
        return envelope
    if envelope.message_id not in (None, known.letter):
        return envelope
    return replace(envelope, exchange=known.origin.exchange, routing_key=known.origin.routing_key)


def heard(outcome: Outcome, rules: Rules) -> Outcome:
    """What a handler asked for, in terms of the tiers there are; what it cannot have is said."""
    match outcome:
        case Failed(wish=timedelta() as wish) if wish in DOCUMENTED:
            return replace(outcome, wish=rules.waits[DOCUMENTED.index(wish)])
        case Failed(error, wish=timedelta() as wish):
            return replace(outcome, error=f"{error}; {no_such_tier(wish)}", wish=None)
        case TooEarly(wait):
            return TooEarly(tier_for(wait, rules.waits), crowded=True)
        case _:
            return outcome


def is_unheard(outcome: Outcome) -> bool:
    """Whether a handler asked for a tier that does not exist."""
    return isinstance(outcome, Failed) and outcome.wish not in (None, *DOCUMENTED)


def no_such_tier(wish: timedelta) -> str:
    """The sentence for the mark and the log."""
    return f"there is no tier {say(wish)} ({', '.join(tables.TIERS)}), so the next one was taken"


def tier_for(wait: timedelta, waits: tuple[timedelta, ...]) -> timedelta:
    """Where a letter that came too early waits: the longest tier that is not longer than its wait,
    or the shortest. Held in memory, it would stand in the way of the others."""
    return max((tier for tier in waits if tier <= wait), default=min(waits))
