"""KDLQ's consumers on RabbitMQ, as the service runs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from faststream.rabbit import QueueType, RabbitBroker

from service.core.marks import Seal
from service.flows.handlers import Handler
from service.flows.kdlq import pages
from service.flows.kdlq import topology as tables
from service.flows.kdlq.consumers import Consumer, subscribe
from service.flows.kdlq.listening import Hooks
from service.flows.kdlq.policy import Rules, flow
from service.flows.room import DeadQueue, Reception
from service.topology.tables import Topology


@dataclass(frozen=True, slots=True)
class OnRabbit:
    """One consumer: its rules, its handler, and how many of its messages are in hand at once."""

    rules: Rules
    handler: Handler
    prefetch: int = 20


def taken_by(rules: Rules, others: Iterable[Rules]) -> tuple[str, ...]:
    """What a consumer takes: its source, and its redelivery queue unless that is another's source."""
    sources = {other.names.source for other in others} - {rules.names.source}
    return tuple(name for name in rules.names.taken if name not in sources)


def topology_of(consumers: Iterable[OnRabbit], kind: QueueType) -> Topology:
    """All their queues, and the one for what they skip."""
    return tables.tables((each.rules.names for each in consumers), kind)


def dead_queues(consumers: Iterable[OnRabbit]) -> tuple[DeadQueue, ...]:
    """Where dead letters lie: in every DLQ that nobody processes."""
    named = tuple(each.rules for each in consumers)
    live = {name for rules in named for name in taken_by(rules, named)}
    return tuple(
        DeadQueue(name) for name in dict.fromkeys(r.names.dlq for r in named) if name not in live
    )


def open_consumers(
    broker: RabbitBroker,
    reception: Reception,
    consumers: tuple[OnRabbit, ...],
    kind: QueueType,
    seal: Seal,
) -> None:
    """A subscriber for every queue they take messages from."""
    named = tuple(each.rules for each in consumers)
    topology = topology_of(consumers, kind)
    for each in consumers:
        for name in taken_by(each.rules, named):
            desk = reception.desk(flow(each.rules, name, seal, topology))
            consumer = Consumer(desk, each.rules, name, each.handler, Hooks())
            about = pages.taken(each.rules, name)
            subscribe(broker, consumer, tables.user_queue(name, kind), each.prefetch, about)
