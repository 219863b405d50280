"""The middleware on a team's own broker, in memory: plain handlers that raise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any

import pytest
from faststream import AckPolicy, Context, Depends, FastStream
from faststream.exceptions import AckMessage, RejectMessage
from faststream.rabbit import RabbitBroker, RabbitMessage, RabbitQueue, RabbitRouter
from pydantic import BaseModel

from service import Freeflow, NotYet, Refuse, RetryIn, Retrying
from service.simulation.broker import SimulatedBroker
from service.simulation.testing import SimulatedPost, SimulatedRabbit

URL = "amqp://guest:guest@127.0.0.1:1/"
DEAD = "freeflow.events.dlq"
Key = Annotated[str, Context("message.raw_message.routing_key")]


class Document(BaseModel):
    """A document."""

    id: int


@asynccontextmanager
async def team(
    handler: Callable[..., Any],
) -> AsyncIterator[tuple[SimulatedBroker, SimulatedRabbit]]:
    """A team's application with one subscriber, on the paper broker."""
    simulation = SimulatedBroker(Freeflow().topology)
    retrying = Retrying(
        URL, key="a key of the team's", post=SimulatedPost(simulation), clock=lambda: simulation.now
    )
    broker = RabbitBroker(logger=None, middlewares=[retrying])
    broker.subscriber(retrying.queue("document"), ack_policy=AckPolicy.MANUAL)(handler)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        yield simulation, rabbit


def publish(simulation: SimulatedBroker, body: bytes = b'{"id": 1}') -> None:
    """An event in JSON, as it says."""
    properties = {"content_type": "application/json", "message_id": "d-1"}
    simulation.publish("freeflow.events", "document.created", body, {}, properties)


async def test_a_handler_that_fails_is_retried_and_shown_the_original_key() -> None:
    seen: list[tuple[int, str, object]] = []

    def tenant() -> str:
        return "acme"

    async def index(
        document: Document, key: Key, message: RabbitMessage, who: str = Depends(tenant)
    ) -> None:
        seen.append((document.id, key, message.headers.get("x-retry-count")))
        raise ValueError(f"boom for {who}")

    async with team(index) as (simulation, rabbit):
        publish(simulation)
        await rabbit.advance(timedelta(hours=1))
        assert seen == [(1, "document.created", count) for count in (None, 1, 2, 3)]
        (dead,) = simulation.letters(DEAD)
        assert dead.headers["x-dlo-reason"] == "failed 4 times: boom for acme"
        assert simulation.unsettled("freeflow.document") == ()


async def test_a_handler_that_works_the_second_time() -> None:
    tries: list[int] = []

    async def index(document: Document) -> None:
        tries.append(document.id)
        if len(tries) == 1:
            raise ValueError("boom")

    async with team(index) as (simulation, rabbit):
        publish(simulation)
        await rabbit.advance(timedelta(hours=1))
        assert tries == [1, 1]
        assert simulation.letters(DEAD) == ()
        assert simulation.unsettled("freeflow.document") == ()


def of_its_own() -> None:
    """A validation error that is not about the letter."""
    Document.model_validate({"id": "x"})


def misread() -> None:
    """A JSON error that is not about the letter."""
    json.loads("{nope")


def raising(error: Exception) -> Callable[[], None]:
    """A handler's end."""

    def end() -> None:
        raise error

    return end


@pytest.mark.parametrize(
    ("body", "end", "place", "reason"),
    [
        (b'{"id": 1}', raising(Refuse("no")), DEAD, "refused: no"),
        (b'{"id": 1}', raising(RejectMessage()), DEAD, "refused: rejected by the handler"),
        (b'{"id": 1}', raising(RetryIn("5m")), "freeflow.document.retry.5m", None),
        (b'{"id": 1}', raising(RetryIn("7m")), "freeflow.document.retry.30s", None),
        (b'{"id": 1}', raising(NotYet("30m")), "freeflow.document.retry.30m", None),
        (b'{"id": 1}', raising(KeyError("x")), "freeflow.document.retry.30s", None),
        (b'{"id": 1}', of_its_own, "freeflow.document.retry.30s", None),
        (b'{"id": 1}', misread, "freeflow.document.retry.30s", None),
        (
            b'{"id": "x"}',
            raising(AssertionError("never called")),
            DEAD,
            "refused: the letter is not what the handler takes: document.id: Input should be a"
            " valid integer, unable to parse string as an integer",
        ),
        (
            b"{nope",
            raising(AssertionError("never called")),
            DEAD,
            "cannot be read: JSONDecodeError: Expecting property name enclosed in double quotes:"
            " line 1 column 2 (char 1)",
        ),
    ],
)
async def test_every_end_of_a_handler_is_a_verdict(
    body: bytes, end: Callable[[], None], place: str, reason: str | None
) -> None:
    async def index(document: Document) -> None:
        end()

    async with team(index) as (simulation, rabbit):
        publish(simulation, body)
        await rabbit.advance()
        (letter,) = simulation.letters(place)
        assert letter.headers.get("x-dlo-reason") == reason
        assert letter.body == body
        assert simulation.unsettled("freeflow.document") == ()


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_handler_may_accept_early(by_hand: bool) -> None:
    async def index(message: RabbitMessage) -> None:
        if by_hand:
            await message.ack()
        raise AckMessage

    async with team(index) as (simulation, rabbit):
        publish(simulation)
        await rabbit.advance(timedelta(hours=1))
        names = [queue.name for queue in simulation.topology.queues]
        assert not any((*simulation.letters(n), *simulation.unsettled(n)) for n in names)


async def no_op(document: Document) -> None:
    """A handler."""


def bad_policy(broker: RabbitBroker, retrying: Retrying) -> None:
    """FastStream's default policy."""
    broker.subscriber(retrying.queue("document"))(no_op)


def bad_queue(broker: RabbitBroker, retrying: Retrying) -> None:
    """A queue without retry queues."""
    broker.subscriber("orders", ack_policy=AckPolicy.MANUAL)(no_op)


def bad_arguments(broker: RabbitBroker, retrying: Retrying) -> None:
    """The right name, but declared otherwise."""
    broker.subscriber(RabbitQueue("freeflow.user"), ack_policy=AckPolicy.MANUAL)(no_op)


UNFIT = [
    (
        bad_policy,
        "the subscriber of freeflow.document must have ack_policy=AckPolicy.MANUAL: Retrying settles"
        " its letters, any other policy would lose them or loop",
    ),
    (
        bad_queue,
        "the queue orders has no retry queues: subscribe to one of freeflow.user, freeflow.auth,"
        " freeflow.alarm, freeflow.document, freeflow.workflow, freeflow.notification,"
        " freeflow.audit, or put Retrying on a router of its own",
    ),
    (
        bad_arguments,
        'the queue freeflow.user stands with other arguments: subscribe to retrying.queue("user")',
    ),
]


@pytest.mark.parametrize(
    ("subscribe", "said"), UNFIT, ids=lambda case: getattr(case, "__name__", "")
)
async def test_a_subscriber_that_cannot_be_retried_is_refused_at_start(
    subscribe: Callable[[RabbitBroker, Retrying], None], said: str
) -> None:
    retrying = Retrying(URL)
    broker = RabbitBroker(URL, middlewares=[retrying])
    subscribe(broker, retrying)
    app = FastStream(broker, lifespan=retrying.lifespan)
    with pytest.raises(SystemExit) as refusal:
        await app.run()
    assert refusal.value.code == said


async def test_a_broker_that_is_away_is_one_sentence() -> None:
    retrying = Retrying(URL)
    app = FastStream(RabbitBroker(URL, middlewares=[retrying]), lifespan=retrying.lifespan)
    with pytest.raises(SystemExit) as refusal:
        await app.run()
    said = "RabbitMQ 127.0.0.1:1 cannot be reached; is it running, and is rabbit.url right?"
    assert refusal.value.code == said


@pytest.mark.parametrize(
    "policy", [AckPolicy.ACK, AckPolicy.REJECT_ON_ERROR, AckPolicy.NACK_ON_ERROR, AckPolicy.MANUAL]
)
async def test_without_its_lifespan_no_letter_is_taken_nor_lost(policy: AckPolicy) -> None:
    simulation, retrying = SimulatedBroker(Freeflow().topology), Retrying(URL)
    broker = RabbitBroker(logger=None, middlewares=[retrying])
    broker.subscriber(retrying.queue("document"), ack_policy=policy)(no_op)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        publish(simulation)
        await rabbit.advance()
        assert len(simulation.unsettled("freeflow.document")) == 1


async def test_on_a_router_it_leaves_the_other_subscribers_alone() -> None:
    retrying, broker = Retrying(URL), RabbitBroker(URL)
    router = RabbitRouter(middlewares=[retrying])
    router.subscriber(retrying.queue("document"), ack_policy=AckPolicy.MANUAL)(no_op)
    broker.include_router(router)
    broker.subscriber("orders")(no_op)
    assert list(retrying._faults(FastStream(broker))) == []


def test_a_domain_that_does_not_exist() -> None:
    with pytest.raises(LookupError, match="there is no domain invoice: user, auth, alarm"):
        Retrying(URL).queue("invoice")


async def test_a_shutdown_is_not_an_attempt() -> None:
    begun = asyncio.Event()

    async def index(document: Document) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with team(index) as (simulation, _rabbit):
        publish(simulation)
        await asyncio.wait_for(begun.wait(), timeout=5)
    assert len(simulation.unsettled("freeflow.document")) == 1
    assert simulation.letters(DEAD) == ()
