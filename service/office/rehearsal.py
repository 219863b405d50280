"""A rehearsal: one letter, a consumer that fails so often, and our own handlers, on the paper broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from faststream.rabbit import ExchangeType, RabbitBroker, RabbitExchange

from service.flows.dlq_processor import consumers
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules
from service.flows.flow import Flow
from service.simulation.broker import SimulatedBroker
from service.simulation.letter import Delivery
from service.simulation.testing import SimulatedRabbit
from service.topology.tables import Binding, Topology, dead_letters_to, durable_queue

SHOP = RabbitExchange("shop", type=ExchangeType.TOPIC)
ORDERS = "orders"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to the letter, so long after it was published."""

    after: timedelta
    what: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Where the letter is in the end, and why."""

    queue: str
    why: str


async def rehearse(
    processor: Flow, rules: Rules, find: FindRoute, key: str, failures: int
) -> tuple[tuple[Moment, ...], Ended]:
    """The letter's story, in virtual time; nothing is contacted."""
    simulation = SimulatedBroker(processor.topology + _foreign_team(rules))
    broker = RabbitBroker(logger=None, apply_types=False)
    consumers.subscribe(broker, _clerk(processor, find, simulation), rules, prefetch=1)
    begun = simulation.now
    async with SimulatedRabbit(broker, simulation) as rabbit:
        simulation.consume(ORDERS, _stubborn(simulation, failures))
        simulation.publish(SHOP.name, key, b"{}", properties={"message_id": "the-letter"})
        await rabbit.advance(max(rules.tiers) * (failures + 1))
    return tuple(_story(simulation, begun)), _end(simulation, failures)


def _foreign_team(rules: Rules) -> Topology:
    """A team that knows nothing of us but the name of its queue's dead-letter exchange."""
    to_us = dead_letters_to(tables.RETRY, tables.RETRY_KEY, rules.kind)
    orders = durable_queue(ORDERS, to_us, rules.kind)
    return Topology((SHOP,), (orders,), (Binding(SHOP, orders, "#"),))


def _stubborn(simulation: SimulatedBroker, failures: int):  # type: ignore[no-untyped-def]
    left = failures

    def receive(delivery: Delivery) -> None:
        nonlocal left
        left -= 1
        simulation.reject(delivery) if left >= 0 else simulation.ack(delivery)

    return receive
