"""The event bus's own subscribers on the simulated broker, with services that answer by a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from faststream.rabbit import QueueType, RabbitBroker

from service.core.delivery import Delivery, Envelope
from service.core.marks import Seal
from service.core.verdict import Verdict
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.event_bus import consumers
from service.flows.event_bus import topology as tables
from service.flows.event_bus.event import Door, Event, Reply
from service.flows.event_bus.policy import Rules
from service.flows.room import Reception
from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import RABBIT_4_3, Flavour
from service.simulation.letter import Letter
from service.simulation.testing import SimulatedPost, SimulatedRabbit

SEAL = Seal(b"a key for the tests, long enough")
SERVICE, OTHER = "wms-cincout", "wms-stock"
MAIN, WORK = "wms.main-exchange", tables.work_name(SERVICE)
WAIT = tables.retry_name(SERVICE)


@dataclass
class Witness:
    """Listens to verdicts."""

    verdicts: list[Verdict] = field(default_factory=list)

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        self.verdicts.append(verdict)

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """Nobody returns letters here but the broker."""


@dataclass
class Bus:
    """The simulated broker with two services on it, and what each of them was handed."""

    simulation: SimulatedBroker
    rabbit: SimulatedRabbit
    witness: Witness
    begun: datetime
    seen: dict[str, list[tuple[float, Event]]]

    def publish(self, body: bytes = b"{}", **properties: Any) -> None:
        """An event of a producer."""
        self.simulation.publish(MAIN, "stock.moved", body, {"tenant": "north"}, properties)

    def moments(self, service: str = SERVICE) -> list[float]:
        """The seconds at which a service was handed something."""
        return [at for at, _ in self.seen[service]]

    def events(self, service: str = SERVICE) -> list[Event]:
        """What a service was handed."""
        return [event for _, event in self.seen[service]]

    def dead(self, service: str = SERVICE) -> tuple[Letter, ...]:
        """The dead letters of a service."""
        return self.simulation.letters(tables.dead_name(service))


@asynccontextmanager
async def open_bus(
    script: Callable[[Event], Reply],
    *,
    other: Callable[[Event], Reply] | None = None,
    rules: Rules | None = None,
    prefetch: int = 5,
    flavour: Flavour = RABBIT_4_3,
    quorum: bool = False,
) -> AsyncIterator[Bus]:
    """The room without its edges, on paper."""
    kind = QueueType.QUORUM if quorum else QueueType.CLASSIC
    rules = replace(rules or Rules(10, timedelta(seconds=5)), kind=kind)
    topology = tables.tables((SERVICE, OTHER), rules.retry_after, kind)
    simulation, witness = SimulatedBroker(topology, flavour), Witness()
    seen: dict[str, list[tuple[float, Event]]] = {SERVICE: [], OTHER: []}
    begun, broker = simulation.now, RabbitBroker(logger=None, apply_types=False)

    def door(name: str, answers: Callable[[Event], Reply]) -> Door:
        async def deliver(event: Event) -> Reply:
            seen[name].append(((simulation.now - begun).total_seconds(), event))
            return answers(event)

        return deliver

    reception = Reception(
        SimulatedPost(simulation), Limits(1024), Listeners(witness), _nothing_to_mend
    )
    for name, answers in ((SERVICE, script), (OTHER, other or script)):
        service = consumers.Service(name, door(name, answers), prefetch)
        desk = consumers.desk_of(service, rules, reception, SEAL)
        desk = replace(desk, clock=lambda: simulation.now)
        consumers.subscribe(broker, consumers.courier_of(service, rules, desk), rules)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        yield Bus(simulation, rabbit, witness, begun, seen)


async def _nothing_to_mend() -> None:
    """The paper broker loses nothing of its topology."""
