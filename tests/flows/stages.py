"""Every flow on the paper broker, with a consumer that fails as it is told: a flow is one entry in FLOWS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from faststream import AckPolicy
from faststream.rabbit import QueueType, RabbitBroker, RabbitMessage

from service.core.outcome import Done, Failed
from service.core.route import Route
from service.edge.listeners import Listeners
from service.edge.reading import Limits, unopened
from service.flows.desk import Desk, outcome_of_handler
from service.flows.event_bus.event import Event, Reply
from service.flows.event_bus.topology import dead_name
from service.flows.kdlq.kafka_room import Cluster
from service.flows.kdlq.message import Message
from service.flows.kdlq.policy import Rules
from service.flows.kdlq.rabbit_room import OnRabbit
from service.flows.kdlq.room import room_of
from service.flows.kdlq.status import Status
from service.flows.kdlq.topology import SKIPPED, Names
from service.flows.room import Reception
from service.flows.settlement import policy as settling
from service.flows.settlement import topology as payments
from service.simulation.broker import SimulatedBroker
from service.simulation.letter import Delivery
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from tests.flows.event_bus.on_paper import MAIN, SEAL, SERVICE, open_bus
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
    idle: tuple[str, ...] = ("audit",)
    """Queues with copies that nobody takes here."""
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


@asynccontextmanager
async def settlement(accepts: Accepts) -> AsyncIterator[Stage]:
    """A worker whose bank refuses."""
    processed = settling.flow(payments.REQUESTED, settling.Rules(), SEAL)
    simulation = SimulatedBroker(processed.topology)
    broker = RabbitBroker(logger=None, apply_types=False)
    post, limits = SimulatedPost(simulation), Limits(1024)
    desk = Desk(processed, post, limits, Listeners(), _nothing_to_mend, lambda: simulation.now)
    seen: list[Mapping[str, object]] = []

    async def work() -> None:
        if not accepts(len(seen)):
            raise ValueError("boom")

    async def take(message: RabbitMessage) -> None:
        seen.append(message.headers)
        await desk.attend(message.raw_message, lambda _delivery: outcome_of_handler(work()))

    queue = payments.worker_queue(payments.REQUESTED, 3, timedelta(minutes=5))
    broker.subscriber(
        queue, payments.REQUESTED, ack_policy=AckPolicy.MANUAL, decoder=unopened, no_reply=True
    )(take)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        yield Stage(simulation, rabbit, seen)


@asynccontextmanager
async def event_bus(accepts: Accepts) -> AsyncIterator[Stage]:
    """A service that answers 503, beside one that is well."""
    seen: list[Mapping[str, object]] = []

    def answer(event: Event) -> Reply:
        seen.append(event.headers)
        return Reply(Done() if accepts(len(seen)) else Failed("503", status=503))

    async with open_bus(answer, other=lambda _event: Reply(Done())) as bus:
        yield Stage(bus.simulation, bus.rabbit, seen)


@asynccontextmanager
async def kdlq(accepts: Accepts) -> AsyncIterator[Stage]:
    """A handler that asks for redelivery, in the room that the service opens."""
    seen: list[Mapping[str, object]] = []

    async def handle(message: object) -> Status:
        assert isinstance(message, Message)
        seen.append(message.headers)
        return Status.OK if accepts(len(seen)) else Status.MUST_BE_REDELIVERED

    names = Names("orders", "orders.dlq", "orders.again", timedelta(seconds=5))
    consumer = OnRabbit(Rules(names, "tests", skipped=SKIPPED), handle)
    room = room_of((consumer,), (), Cluster(()), QueueType.CLASSIC, SEAL)
    simulation = SimulatedBroker(room.topology)
    broker = RabbitBroker(logger=None, apply_types=False)
    post, limits = SimulatedPost(simulation), Limits(1024)
    room.subscribe(broker, Reception(post, limits, Listeners(), _nothing_to_mend))
    async with SimulatedRabbit(broker, simulation) as rabbit:
        yield Stage(simulation, rabbit, seen)


async def _nothing_to_mend() -> None:
    """The paper broker loses nothing of its topology."""


FLOWS = (
    Case("dlq_processor", dlq_processor, ("shop", "order.created"), 4, "dlq-queue"),
    Case("freeflow", freeflow, ("freeflow.events", "document.created"), 4, "freeflow.events.dlq"),
    Case(
        "settlement",
        settlement,
        ("settlement.requested", ""),
        4,
        "dlq.settlement.requested",
        idle=("dlq.settlement.monitor",),
    ),
    Case("event_bus", event_bus, (MAIN, "stock.moved"), 11, dead_name(SERVICE)),
    Case("kdlq", kdlq, ("", "orders"), 4, "orders.dlq"),
)
