"""The room freeflow on the simulated broker, with one handler for `document`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from faststream.rabbit import RabbitBroker

from service.core.marks import Seal
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.desk import Desk
from service.flows.freeflow import consumers
from service.flows.freeflow.event import Event
from service.flows.freeflow.policy import Rules, flow
from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import RABBIT_4_3, Flavour
from service.simulation.letter import Letter
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from service.topology.tables import Topology
from tests.memory.office import KEY, Witness

Ends = Callable[[int], Exception | None]
"""What the handler raises at the delivery of this number: 1 is the first."""


@dataclass
class Room:
    """The paper broker with our subscriber on it, and what the handler has seen."""

    simulation: SimulatedBroker
    rabbit: SimulatedRabbit
    witness: Witness
    begun: datetime
    seen: list[Mapping[str, object]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)

    def publish(
        self, key: str = "document.created", body: bytes = b"{}", **headers: object
    ) -> None:
        """An event."""
        self.simulation.publish("freeflow.events", key, body, headers, {"message_id": "d-1"})

    @property
    def dead(self) -> tuple[Letter, ...]:
        """What is in `freeflow.events.dlq`."""
        return self.simulation.letters("freeflow.events.dlq")


@asynccontextmanager
async def open_room(
    ends: Ends,
    rules: Rules | None = None,
    more: Topology | None = None,
    flavour: Flavour = RABBIT_4_3,
) -> AsyncIterator[Room]:
    """The handler ends each delivery as it is told."""
    rules = rules or Rules()
    simulation = SimulatedBroker(rules.topology + (more or Topology()), flavour)
    witness, broker = Witness(), RabbitBroker(logger=None, apply_types=False)
    desk = Desk(
        flow("document", rules, Seal(KEY)),
        SimulatedPost(simulation),
        Limits(max_body=1024),
        Listeners(witness),
        _mend,
        lambda: simulation.now,
    )

    async def handler(event: Event) -> None:
        room.events.append(event)
        room.seen.append(event.headers)
        room.moments.append((simulation.now - room.begun).total_seconds())
        if (error := ends(len(room.events))) is not None:
            raise error

    consumers.subscribe(broker, {"document": desk}, {"document": handler}, rules, prefetch=10)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        room = Room(simulation, rabbit, witness, simulation.now)
        yield room


async def _mend() -> None:
    """The paper broker loses nothing of its topology."""
