"""The application's own subscribers on the simulated broker: real handlers, middlewares, ack policies."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from aiormq.exceptions import ChannelNotFoundEntity, PublishError
from faststream import AckPolicy, BaseMiddleware
from faststream.exceptions import NackMessage
from faststream.rabbit import Channel, ExchangeType, RabbitBroker, RabbitExchange, RabbitMessage

from service.core.marks import LETTER
from service.core.plan import Address, Send
from service.edge.letter import Letter
from service.edge.post import Unroutable
from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import FLAVOURS, RABBIT_3_10, Flavour
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from service.topology.tables import (
    DEFAULT,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

SHOP = RabbitExchange("shop", type=ExchangeType.TOPIC)
RETRY = RabbitExchange("retry", type=ExchangeType.TOPIC)
WORK = durable_queue("orders", dead_letters_to(RETRY, "retry"))
CLERK = durable_queue("clerk")
TIERS = tuple(
    durable_queue(f"delay.{n}", expires_to(DEFAULT, WORK.name, timedelta(seconds=wait)))
    for n, wait in ((1, 10), (2, 15), (3, 20))
)
DEAD = durable_queue("dead")
TOPOLOGY = Topology(
    (SHOP, RETRY),
    (WORK, CLERK, *TIERS, DEAD),
    (Binding(SHOP, WORK, "order.#"), Binding(RETRY, CLERK, "retry")),
)


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
async def test_a_letter_climbs_the_ladder_and_ends_among_the_dead(flavour: Flavour) -> None:
    simulation, broker = SimulatedBroker(TOPOLOGY, flavour), RabbitBroker()
    moments: list[float] = []

    @broker.subscriber(WORK)
    async def handle(body: str) -> None:
        moments.append((simulation.now - start).total_seconds())
        raise ValueError(body)

    @broker.subscriber(CLERK, ack_policy=AckPolicy.MANUAL)
    async def judge(message: RabbitMessage) -> None:
        count = message.headers.get("x-retry-count", 0) + 1
        to = f"delay.{count}" if count <= 3 else "dead"
        await broker.publish(
            message.body, queue=to, headers={"x-retry-count": count}, mandatory=True, persist=True
        )
        await message.raw_message.ack()

    start, begun = simulation.now, time.perf_counter()
    async with SimulatedRabbit(broker, simulation) as rabbit:
        await broker.publish("boom", exchange=SHOP, routing_key="order.created")
        await rabbit.advance(3600)

    assert moments == [0, 10, 25, 45]
    assert [letter.body for letter in simulation.letters("dead")] == [b"boom"]
    assert simulation.lost() == ()
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize(
    ("policy", "raised", "ends"),
    [
        (AckPolicy.REJECT_ON_ERROR, ValueError("x"), "clerk"),
        (AckPolicy.ACK, ValueError("x"), "gone"),
        (AckPolicy.ACK_FIRST, ValueError("x"), "gone"),
        (AckPolicy.ACK, NackMessage(requeue=False), "clerk"),
        (AckPolicy.MANUAL, ValueError("x"), "stuck"),
        (AckPolicy.REJECT_ON_ERROR, None, "gone"),
    ],
)
async def test_the_ack_policy_decides_as_on_a_real_broker(
    policy: AckPolicy, raised: Exception | None, ends: str
) -> None:
    simulation, broker = SimulatedBroker(TOPOLOGY), RabbitBroker()

    @broker.subscriber(WORK, ack_policy=policy)
    async def handle(body: str) -> None:
        if raised is not None:
            raise raised

    async with SimulatedRabbit(broker, simulation) as rabbit:
        await broker.publish("x", queue=WORK.name)
        await rabbit.advance()
    places = {"clerk": simulation.letters("clerk"), "stuck": simulation.unsettled("orders")}
    assert [name for name, letters in places.items() if letters] == (
        [] if ends == "gone" else [ends]
    )


async def test_a_requeued_letter_comes_again_and_says_so() -> None:
    simulation, broker = SimulatedBroker(TOPOLOGY), RabbitBroker()
    seen: list[bool | None] = []

    @broker.subscriber(WORK, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def handle(message: RabbitMessage) -> None:
        seen.append(message.raw_message.redelivered)
        if len(seen) < 3:
            raise ValueError

    async with SimulatedRabbit(broker, simulation) as rabbit:
        await broker.publish("x", queue=WORK.name)
        await rabbit.advance()
    assert seen == [False, True, True]


async def test_what_a_handler_returns_is_published_before_its_letter_is_acknowledged() -> None:
    simulation, broker = SimulatedBroker(TOPOLOGY), RabbitBroker()

    @broker.subscriber(WORK)
    @broker.publisher(exchange=SHOP, routing_key="nobody")
    async def unheard(body: str) -> str:
        return body

    @broker.subscriber(CLERK)
    @broker.publisher("dead")
    async def heard(body: str) -> str:
        return body

    async with SimulatedRabbit(broker, simulation) as rabbit:
        await broker.publish("x", queue=WORK.name)
        await rabbit.advance()
    # The first answer found no queue, so the letter was rejected, and the clerk's answer found one.
    assert [letter.body for letter in simulation.letters("dead")] == [b"x"]


async def test_the_end_cuts_off_what_still_runs() -> None:
    simulation, broker = SimulatedBroker(TOPOLOGY), RabbitBroker()
    begun = asyncio.Event()

    @broker.subscriber(WORK)
    async def handle(body: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with SimulatedRabbit(broker, simulation):
        await broker.publish("x", queue=WORK.name)
        await begun.wait()
    assert len(simulation.unsettled("orders")) == 1


async def test_prefetch_holds_letters_back() -> None:
    simulation, broker = SimulatedBroker(TOPOLOGY), RabbitBroker()

    @broker.subscriber(WORK, channel=Channel(prefetch_count=2), ack_policy=AckPolicy.MANUAL)
    async def handle(body: str) -> None: ...

    async with SimulatedRabbit(broker, simulation) as rabbit:
        for _ in range(5):
            await broker.publish("x", queue=WORK.name)
        await rabbit.advance()
        assert len(simulation.unsettled("orders")) == 2
        assert len(simulation.letters("orders")) == 3


async def test_middlewares_run_and_properties_travel() -> None:
    simulation = SimulatedBroker(TOPOLOGY, RABBIT_3_10)
    passed: list[str] = []

    class Witness(BaseMiddleware[Any, Any]):
        async def consume_scope(self, call_next: Any, msg: Any) -> Any:
            passed.append(msg.raw_message.routing_key)
            return await call_next(msg)

    broker = RabbitBroker(middlewares=(Witness,))
    seen: dict[str, object] = {}

    @broker.subscriber(WORK)
    async def handle(message: RabbitMessage) -> None:
        raw = message.raw_message
        seen.update(
            id=raw.message_id, type=raw.type, mode=raw.delivery_mode, tenant=raw.headers["tenant"]
        )

    async with SimulatedRabbit(broker, simulation) as rabbit:
        await broker.publish(
            {"a": 1},
            exchange=SHOP,
            routing_key="order.x",
            message_id="m1",
            message_type="order",
            persist=True,
            headers={"tenant": "t"},
        )
        await rabbit.advance()
    assert passed == ["order.x"]
    assert seen == {"id": "m1", "type": "order", "mode": 2, "tenant": "t"}


async def test_what_nothing_takes_is_returned_and_a_missing_exchange_is_an_error() -> None:
    broker = RabbitBroker()
    async with SimulatedRabbit(broker, SimulatedBroker(TOPOLOGY)):
        with pytest.raises(PublishError):
            await broker.publish("x", exchange=SHOP, routing_key="nobody")
        with pytest.raises(ChannelNotFoundEntity, match="no exchange 'absent'"):
            await broker.publish("x", exchange="absent", routing_key="k")


async def test_a_post_over_the_simulation_sends_or_says_unroutable() -> None:
    simulation = SimulatedBroker(TOPOLOGY)
    post, letter = (
        SimulatedPost(simulation),
        Letter(b"x", {"tenant": "t", "x-death": []}, {"message_id": "m"}),
    )
    await post.send(letter, Send(Address("", "dead"), {LETTER: "m"}))
    (dead,) = simulation.letters("dead")
    assert dead.headers == {"tenant": "t", LETTER: "m"}
    assert dead.properties["message_id"] == "m"
    for address in (Address("", "nobody"), Address("absent", "k")):
        with pytest.raises(Unroutable):
            await post.send(letter, Send(address, {LETTER: "m"}))
