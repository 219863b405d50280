"""A rehearsal: one letter, a consumer that fails so often, and our own handlers, on the paper broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from faststream.rabbit import ExchangeType, RabbitBroker, RabbitExchange

from service.core import duration
from service.core.marks import REASON, RETRY_COUNT
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.desk import Desk
from service.flows.dlq_processor import consumers
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules
from service.flows.flow import Flow
from service.simulation.broker import SimulatedBroker
from service.simulation.journal import Event, Happening
from service.simulation.letter import Delivery, Letter
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from service.topology.arguments import time_to_live
from service.topology.tables import Binding, Topology, dead_letters_to, durable_queue

SHOP = RabbitExchange("shop", type=ExchangeType.TOPIC)
ORDERS, DEAD = "orders", "dlq-queue"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to the letter, so long after it was published."""

    after: timedelta
    what: str


@dataclass(frozen=True, slots=True)
class Story:
    """A letter's way, and where it is in the end: accepted there, or dead for this reason."""

    moments: tuple[Moment, ...]
    queue: str
    reason: str = ""


async def rehearse(
    processor: Flow, rules: Rules, find: FindRoute, key: str, failures: int
) -> Story:
    """The story of a letter that fails so often, in virtual time; nothing is contacted."""
    simulation = SimulatedBroker(processor.topology + _team(rules))
    broker = RabbitBroker(logger=None, apply_types=False)
    consumers.subscribe(broker, _clerk(processor, find, simulation), rules, prefetch=1)
    begun = simulation.now
    async with SimulatedRabbit(broker, simulation) as rabbit:
        simulation.consume(ORDERS, _Consumer(simulation, failures))
        simulation.publish(SHOP.name, key, b"{}", properties={"message_id": "the-letter"})
        await rabbit.advance(max(rules.tiers) * (failures + 1))
    moments = tuple(
        Moment(event.at - begun, what)
        for event in simulation.journal
        if (what := _told(event, simulation)) is not None
    )
    dead = simulation.letters(DEAD)
    return Story(moments, DEAD, _reason(dead[0])) if dead else Story(moments, ORDERS)


@dataclass(slots=True)
class _Consumer:
    """Rejects the first deliveries, then accepts."""

    simulation: SimulatedBroker
    failures: int

    def __call__(self, delivery: Delivery) -> None:
        self.failures -= 1
        if self.failures >= 0:
            self.simulation.reject(delivery)
        else:
            self.simulation.ack(delivery)


def _team(rules: Rules) -> Topology:
    """A team that knows nothing of us but the name of its queue's dead-letter exchange."""
    to_us = dead_letters_to(tables.RETRY, tables.RETRY_KEY, rules.kind)
    orders = durable_queue(ORDERS, to_us, rules.kind)
    return Topology((SHOP,), (orders,), (Binding(SHOP, orders, "#"),))


def _clerk(processor: Flow, find: FindRoute, simulation: SimulatedBroker) -> consumers.Clerk:
    async def mend() -> None:
        """The paper broker loses nothing of its topology."""

    post, limits = SimulatedPost(simulation), Limits(max_body=1024)
    desk = Desk(processor, post, limits, Listeners(), mend, lambda: simulation.now)
    return consumers.Clerk(desk, find)


def _told(event: Event, simulation: SimulatedBroker) -> str | None:
    """What a person wants to read of the journal; the machinery between is left out."""
    retry = event.letter.headers.get(RETRY_COUNT, 0)
    match event.what:
        case Happening.PUBLISHED if event.where == SHOP.name and not retry:
            return f"published to {SHOP.name} with the key {event.letter.routing_key}"
        case Happening.DIED if event.where == ORDERS:
            return f"{event.why} by {ORDERS}"
        case Happening.ACKNOWLEDGED if event.where == ORDERS:
            return f"accepted by {ORDERS}"
        case Happening.ARRIVED if event.where == ORDERS and retry:
            return f"back in {ORDERS}"
        case Happening.ARRIVED if event.where == DEAD:
            return f"dead letter in {DEAD}: {_reason(event.letter)}"
        case Happening.ARRIVED if wait := time_to_live(simulation.topology.queue(event.where)):
            return f"retry {retry}, waits in {event.where} for {duration.say(wait)}"
        case _:
            return None


def _reason(letter: Letter) -> str:
    return str(letter.headers.get(REASON, ""))
