"""The application's own subscribers on the simulated broker, with a foreign team beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from faststream.rabbit import ExchangeType, QueueType, RabbitBroker, RabbitExchange

from service.core.delivery import Delivery as Judged
from service.core.delivery import Envelope
from service.core.marks import Seal
from service.core.route import Route, RouteBook
from service.core.verdict import Verdict
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.desk import Desk
from service.flows.dlq_processor import consumers, drill
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import Rules, flow
from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import RABBIT_4_3, Flavour
from service.simulation.letter import Delivery, Letter
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from service.topology.tables import Binding, Topology, dead_letters_to, durable_queue

TIERS = tuple(timedelta(seconds=wait) for wait in (10, 15, 20))
KEY = b"a key for the tests, long enough"
SHOP = RabbitExchange("shop", type=ExchangeType.TOPIC)
ORDERS = durable_queue("orders", dead_letters_to(tables.RETRY, tables.RETRY_KEY))
AUDIT = durable_queue("audit")
FOREIGN = Topology(
    (SHOP,), (ORDERS, AUDIT), (Binding(SHOP, ORDERS, "order.#"), Binding(SHOP, AUDIT, "#"))
)


@dataclass
class Witness:
    """Listens to verdicts."""

    verdicts: list[Verdict] = field(default_factory=list)
    returned_letters: int = 0

    def judged(self, flow: str, delivery: Judged, verdict: Verdict) -> None:
        """A letter has its verdict."""
        self.verdicts.append(verdict)

    def returned(self, flow: str, delivery: Judged, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        self.returned_letters += 1


@dataclass
class Office:
    """The simulated broker with our subscribers on it, and what the team's consumer has seen."""

    simulation: SimulatedBroker
    rabbit: SimulatedRabbit
    witness: Witness
    begun: datetime
    seen: list[tuple[float, Delivery]] = field(default_factory=list)

    def consume(self, accepts: Callable[[Delivery], bool]) -> None:
        """The team's consumer of `orders`: acknowledges what it accepts, rejects the rest."""

        def receive(delivery: Delivery) -> None:
            self.seen.append(((self.simulation.now - self.begun).total_seconds(), delivery))
            if accepts(delivery):
                self.simulation.ack(delivery)
            else:
                self.simulation.reject(delivery)

        self.simulation.consume("orders", receive)

    def publish(self, key: str, headers: dict[str, Any] | None = None, **properties: Any) -> None:
        """A letter of the team."""
        self.simulation.publish("shop", key, b"{}", headers or {}, properties)

    @property
    def moments(self) -> list[float]:
        """The seconds at which `orders` delivered."""
        return [at for at, _ in self.seen]

    @property
    def dead(self) -> tuple[Letter, ...]:
        """What is in `dlq-queue`."""
        return self.simulation.letters("dlq-queue")


@asynccontextmanager
async def open_office(
    *routes: Route, key: bytes = KEY, flavour: Flavour = RABBIT_4_3, quorum: bool = False
) -> AsyncIterator[Office]:
    """The service without its edges: clerk and drill, on paper."""
    kind = QueueType.QUORUM if quorum else QueueType.CLASSIC
    rules = Rules(TIERS, max_retries=3, kind=kind, drill=True)
    find, witness = RouteBook.of(routes).find, Witness()
    processor = flow(rules, find, Seal(key))
    simulation = SimulatedBroker(processor.topology + FOREIGN, flavour)
    broker = RabbitBroker(logger=None, apply_types=False)
    desk = Desk(
        processor,
        SimulatedPost(simulation),
        Limits(max_body=1024),
        Listeners(witness),
        _nothing_to_mend,
        lambda: simulation.now,
    )
    consumers.subscribe(broker, consumers.Clerk(desk, find), rules, prefetch=100)
    drill.subscribe(broker, rules)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        yield Office(simulation, rabbit, witness, simulation.now)


async def _nothing_to_mend() -> None:
    """The paper broker loses nothing of its topology."""
