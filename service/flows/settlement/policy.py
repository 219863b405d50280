"""Settlement as a flow: count by the broker's deliveries, retries by requeue, burials by publishing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from faststream.rabbit import QueueType, RabbitExchange

from service.core.delivery import Delivery, Envelope, dead_lettered, in_hand
from service.core.history import deliveries_before
from service.core.marks import REASON, Marks, Seal, read
from service.core.outcome import Failed, Refused
from service.core.plan import Address, Moved, Publish, Reject, Ways
from service.core.policy import Policy
from service.core.verdict import Bury, Why
from service.flows.flow import Flow
from service.flows.settlement import topology as tables
from service.topology.tables import Topology

NAME = "settlement"
MONITOR = "settlement_monitor"
# What the broker does to a letter by itself.
BY_THE_BROKER = {"expired": Why.EXPIRED, "delivery_limit": Why.DELIVERY_LIMIT}


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about this flow."""

    max_retries: int = 3
    ttl: timedelta = timedelta(minutes=5)
    kind: QueueType = QueueType.CLASSIC


def flow(topic: RabbitExchange, rules: Rules, seal: Seal) -> Flow:
    """The five answers for the worker of a topic; the two workers differ in nothing else."""
    queue = tables.worker_queue(topic, rules.max_retries).name
    again = Policy(ladder=(), max_retries=rules.max_retries)

    def count(envelope: Envelope) -> Delivery:
        before = deliveries_before(envelope.headers, redelivered=envelope.redelivered)
        return in_hand(envelope, NAME, seal, queue, before)

    def dead(delivery: Delivery, _verdict: Moved) -> Address:
        return tables.address(tables.dead_exchange(topic), delivery.origin.routing_key)

    # No verdict of this policy is a Retry: a failure goes back to its queue.
    ways = Ways(retry=Reject(), bury=Publish(dead))
    return Flow(NAME, count, lambda _key: again, ways, _everything(rules), seal)


def monitoring(rules: Rules, seal: Seal) -> Flow:
    """The five answers for the monitor. Its letters are copies: one it cannot use is let go, for
    the letter itself lies in the dead letters, and burying it there would bring it back here."""
    let_go = Ways(retry=Reject(), bury=Reject())
    policy = Policy(ladder=(), max_retries=rules.max_retries)
    return Flow(
        MONITOR,
        lambda envelope: died(envelope, seal),
        lambda _key: policy,
        let_go,
        _everything(rules),
        seal,
    )


def died(envelope: Envelope, seal: Seal) -> Delivery:
    """How a dead letter came to its end: by our verdict, which its marks tell, or by the broker's."""
    known, reason = read(envelope.headers, seal), envelope.headers.get(REASON)
    if isinstance(known, Marks) and known.flow == NAME and isinstance(reason, str):
        return Delivery(known, Refused(reason, Why.SPENT), envelope.at)
    return dead_lettered(envelope, NAME, seal)


def burial(delivery: Delivery, attempts: int) -> Bury | None:
    """The broker's own verdict, in our words; None where the verdict was ours, and is told already."""
    match delivery.outcome:
        case Failed(error, kind) if kind in BY_THE_BROKER:
            tried = f"after {attempts} attempts" if attempts else "untried"
            return Bury(f"{error}, {tried}", BY_THE_BROKER[kind])
        case _:
            return None


def _everything(rules: Rules) -> Topology:
    return tables.tables(rules.max_retries, rules.ttl, rules.kind)
