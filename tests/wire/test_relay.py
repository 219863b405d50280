"""The relay on a real broker, where one letter is refused and its neighbours are not to blame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel
from pamqp.common import FieldTable

from deploy.local.rabbitmq import Node
from service.core.marks import LETTER
from service.core.plan import Address, Plan, Send, Settle
from service.edge import tolerance
from service.edge.wire.consuming import Consuming
from service.edge.wire.delivered import Delivered
from service.edge.wire.job import Errand
from service.edge.wire.lane import Manners, WireLane
from service.edge.wire.parcel import Parcel
from service.edge.wire.target import Target
from tests.kit.broker import channel_to, depth
from tests.servers.waiting import eventually

SOURCE, TARGET = "relay-source", "relay-target"
REFUSED_SIZE = (
    "application:set_env(rabbit, max_message_size, {}), persistent_term:erase(max_message_size)."
)


class Clerk:
    """Sends every letter to one queue."""

    def __init__(self) -> None:
        self.done = 0

    def attend(self, delivered: Delivered) -> Errand:
        """To the target, under its own id."""
        parcel = Parcel(delivered, 65_536)
        send = Send(Address("", TARGET), {LETTER: parcel.message_id})
        return Errand(parcel, Plan(Settle.ACK, (send,)), self._tell)

    def stumbled(self, delivered: Delivered, bug: Exception) -> Errand:
        """Not in these tests."""
        raise AssertionError(bug)

    def taken_back(self, letters: int, why: str) -> None:
        """Nothing to note."""

    def _tell(self, _plan: Plan) -> None:
        self.done += 1


@asynccontextmanager
async def lane_to(url: str, clerk: Clerk) -> AsyncIterator[WireLane]:
    """A lane between the two queues."""

    async def mend() -> None:
        """Nothing is broken."""

    tolerance.install()
    lane = WireLane(url, {SOURCE: clerk}, Manners(300, 10, 0.5, frozenset()), mend)
    await lane.open()
    try:
        yield lane
    finally:
        await lane.stop_intake(1)
        await lane.close()


@pytest.fixture
async def channel(rabbit_url: str) -> AsyncIterator[AbstractChannel]:
    """Both queues, empty."""
    async with channel_to(rabbit_url) as channel:
        for name in (SOURCE, TARGET):
            await channel.queue_delete(name)
            await channel.declare_queue(name, durable=True)
        yield channel
        for name in (SOURCE, TARGET):
            await channel.queue_delete(name)


async def test_a_letter_that_the_broker_will_not_have_holds_up_no_other(
    rabbit_node: Node, channel: AbstractChannel
) -> None:
    """RabbitMQ closes the channel over a letter that is too large since its limit was lowered."""
    for number in range(41):
        body = b"x" * (200_000 if number == 20 else 100)
        message = Message(body, message_id=f"m{number}", delivery_mode=DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, SOURCE)
    rabbit_node.ctl("eval", REFUSED_SIZE.format(100_000))
    clerk = Clerk()
    try:
        async with lane_to(rabbit_node.url, clerk) as lane:
            await eventually(lambda: clerk.done == 40, within=15)
            assert (lane.relay.in_hand, lane.relay.held) == (1, 1)
            trouble = lane.trouble
            assert trouble is not None
            assert "larger than" in trouble.says
            rabbit_node.ctl("eval", REFUSED_SIZE.format(134_217_728))
            await eventually(lambda: clerk.done == 41, within=10)
            await eventually(lambda: lane.trouble is None)
    finally:
        rabbit_node.ctl("eval", REFUSED_SIZE.format(134_217_728))
    assert await depth(channel, SOURCE) == 0


async def test_a_letter_that_is_held_is_seen_while_others_pass(
    rabbit_url: str, channel: AbstractChannel
) -> None:
    full: FieldTable = {"x-max-length": 1, "x-overflow": "reject-publish"}
    await channel.queue_delete(TARGET)
    await channel.declare_queue(TARGET, durable=True, arguments=full)
    clerk = Clerk()
    async with lane_to(rabbit_url, clerk) as lane:
        for number in range(3):
            await channel.default_exchange.publish(Message(b"", message_id=f"m{number}"), SOURCE)
        await eventually(lambda: lane.relay.held == 2)
        first = lane.trouble
        assert first is not None
        assert "the queue refuses" in first.says
        queue = await channel.get_queue(TARGET)
        await queue.purge()
        await eventually(lambda: clerk.done == 2)
        assert lane.trouble is not None
        assert lane.trouble.since <= first.since + 1
        await queue.purge()
        await eventually(lambda: clerk.done == 3)
        assert lane.trouble is None


async def test_a_stop_while_consumers_start_leaves_none_running(
    rabbit_url: str, channel: AbstractChannel
) -> None:
    names = [f"{SOURCE}-{n}" for n in range(6)]
    for name in names:
        await channel.declare_queue(name, durable=True)
    taken: list[Delivered] = []
    consuming = Consuming(Target.of(rabbit_url), dict.fromkeys(names, taken.append), prefetch=1)
    await consuming.open()
    connection = consuming.link.connection
    assert connection is not None
    starting = asyncio.ensure_future(consuming._furnish(connection))
    await asyncio.sleep(0)
    await consuming.stop()
    await starting
    for name in names:
        await channel.default_exchange.publish(Message(b""), name)
        assert await depth(channel, name) == 1
    assert taken == []
    await consuming.close()
    for name in names:
        await channel.queue_delete(name)
