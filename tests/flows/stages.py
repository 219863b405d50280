"""Every flow on the paper broker, with a consumer that fails as it is told: a flow is one entry in FLOWS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from service.core.route import Route
from service.simulation.broker import SimulatedBroker
from service.simulation.letter import Delivery
from service.simulation.testing import SimulatedRabbit
from tests.flows.freeflow.room import open_room
from tests.memory.office import open_office

Accepts = Callable[[int], bool]
"""Whether the delivery of this number is accepted: 1 is the first."""


@dataclass
class Stage:
    """A flow at work, and the headers of every delivery its consumer has seen."""

    simulation: SimulatedBroker
    rabbit: SimulatedRabbit
    seen: list[Mapping[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """What its document says of a flow."""

    name: str
    open: Callable[[Accepts], AbstractAsyncContextManager[Stage]]
    entry: tuple[str, str]
    """Exchange and key with which users publish."""
    deliveries: int
    """How often a letter that always fails is handed out in all."""
    dead: str
    """The queue of the dead letters."""
    whole: timedelta = timedelta(hours=1)
    """Time enough for all of it."""


@asynccontextmanager
async def dlq_processor(accepts: Accepts) -> AsyncIterator[Stage]:
    """A foreign team's consumer that rejects."""
    async with open_office(Route("order.created", 3)) as office:
        stage = Stage(office.simulation, office.rabbit)

        def answer(delivery: Delivery) -> bool:
            stage.seen.append(delivery.headers)
            return accepts(len(stage.seen))

        office.consume(answer)
        yield stage


@asynccontextmanager
async def freeflow(accepts: Accepts) -> AsyncIterator[Stage]:
    """A handler that raises."""
    async with open_room(lambda number: None if accepts(number) else ValueError("boom")) as room:
        stage = Stage(room.simulation, room.rabbit)
        room.seen = stage.seen
        yield stage


FLOWS = (
    Case("dlq_processor", dlq_processor, ("shop", "order.created"), 4, "dlq-queue"),
    Case("freeflow", freeflow, ("freeflow.events", "document.created"), 4, "freeflow.events.dlq"),
)
