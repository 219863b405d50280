"""Kafka's consumers in the service: they stop rather than pass a record by, and begin again by themselves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from service.core.marks import Seal
from service.core.plan import Send
from service.edge.letter import Letter
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.kdlq.kafka_room import Cluster, KafkaConsumers, OnKafka
from service.flows.kdlq.policy import Rules
from service.flows.kdlq.status import Status
from service.flows.kdlq.topology import Names
from service.flows.room import Reception
from tests.flows.kdlq.kafka_stage import INVALID
from tests.kit.kafka import Outside
from tests.servers.kafka import PRODUCE, MockKafka
from tests.servers.waiting import eventually

# The mock keeps a member that has left until its session is over.
SOON = {"session.timeout.ms": "2000", "heartbeat.interval.ms": "300"}


class NoPost:
    """RabbitMQ's, which nothing is sent to here."""

    async def send(self, letter: Letter, send: Send) -> None:
        """Not called."""
        raise AssertionError("nothing is skipped here")


async def handle(_message: object) -> Status:
    """Every message is an error."""
    return Status.ERROR


async def mend() -> None:
    """Nothing is broken."""


class Leaving:
    """A subscriber that never gets out of its group."""

    running, consumer = False, object()


async def test_a_consumer_that_never_leaves_its_group_is_not_waited_for_without_end() -> None:
    soon = timedelta(seconds=0.1)
    consumers = KafkaConsumers((), Cluster(("127.0.0.1:9",), grace=soon), Seal())
    broker: Any = SimpleNamespace(running=True)
    stuck: list[Any] = [Leaving()]
    async with asyncio.timeout(5):
        with pytest.raises(ConnectionError, match="does not leave its group"):
            await consumers._start(broker, stuck)


async def fail_to_stop() -> None:
    """As a consumer whose threads are gone."""
    raise RuntimeError("cannot schedule new futures after shutdown")


async def test_a_broker_that_cannot_be_stopped_is_left_behind() -> None:
    consumers = KafkaConsumers((), Cluster((), grace=timedelta(seconds=0.1)), Seal())
    for stop in (asyncio.Event().wait, fail_to_stop):
        broker: Any = SimpleNamespace(stop=stop)
        with structlog.testing.capture_logs() as lines:
            async with asyncio.timeout(5):
                await consumers._hang_up(broker)
        assert [line["action"] for line in lines] == ["kafka_stuck"]


async def test_consuming_begins_again_where_it_stopped() -> None:
    kafka = MockKafka()
    kafka.create("room", "room.dlq")
    outside = Outside(kafka.address)
    await asyncio.to_thread(outside.send, "room", b"one")
    tenth = timedelta(seconds=0.1)
    cluster = Cluster((kafka.address,), SOON, tenth, tenth * 10, tenth)
    consumer = OnKafka(Rules(Names("room", "room.dlq"), "tests"), handle, "room")
    consumers = KafkaConsumers((consumer,), cluster, Seal())
    assert consumers.trouble
    kafka.refuse(PRODUCE, 100, INVALID)
    reception = Reception(NoPost(), Limits(1024), Listeners(), mend)
    working = asyncio.ensure_future(consumers.run(reception))
    try:
        await eventually(lambda: consumers.trouble.startswith("consuming stopped"), 15)
        assert await asyncio.to_thread(outside.left, "room", "room") == 1
        kafka.stop_refusing(PRODUCE)

        async def committed() -> bool:
            return await asyncio.to_thread(outside.left, "room", "room") == 0

        await eventually(committed, 30, 0.2)
        assert consumers.trouble == ""
        (dead,) = await asyncio.to_thread(outside.read, "room.dlq")
        assert dead.value() == b"one"
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        kafka.close()
