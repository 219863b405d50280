"""Faults of Kafka: nothing is lost, nothing is committed past a failed copy, a crash costs one duplicate."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from faststream import AckPolicy, BaseMiddleware
from faststream.confluent import KafkaBroker
from faststream.rabbit import RabbitBroker

from service import KDLQ, KDLQConfig, KDLQError, Message, Result, Status
from service.core.marks import KILLS, LETTER, REPLAY, Seal
from service.core.replayed import Replayed, marked
from tests.flows.kdlq.kafka_stage import INVALID, SECOND, Stage, stage_on
from tests.kit.kafka import Outside, list_of
from tests.servers.kafka import PRODUCE, MockKafka
from tests.servers.waiting import eventually


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockKafka]:
    """A Kafka of our own, to be refused and taken down."""
    mock = MockKafka()
    yield mock
    mock.close()


async def test_a_copy_that_kafka_refuses_is_tried_again(kafka: MockKafka) -> None:
    async with stage_on(kafka, "refused", b"one", refusals=2) as stage:
        await eventually(lambda: "killed" in stage.told, 15)
        assert stage.told == ["not killed", "killed"]
        await eventually(stage_is_done(stage), 5)
        assert len(await stage.dead()) == 1


async def test_consuming_stops_before_anything_is_committed_past_a_failed_copy(
    kafka: MockKafka,
) -> None:
    two = (b"one", b"two")
    async with stage_on(kafka, "stopped", *two, refusals=100, patience=SECOND / 2) as stage:
        await eventually(lambda: not stage.subscriber.running, 15)
        await eventually(lambda: stage.subscriber.consumer is None, 5)
        kafka.stop_refusing(PRODUCE)
        assert await stage.left() == 2
        assert await stage.dead() == []
        await stage.subscriber.start()
        await eventually(stage_is_done(stage), 15)
        assert sorted(record.value() for record in await stage.dead()) == [b"one", b"two"]


async def test_a_broker_that_was_away(kafka: MockKafka) -> None:
    async with stage_on(kafka, "away", b"one") as stage:
        await eventually(lambda: stage.told == ["killed"], 10)
        with kafka.down():
            assert await _stays(lambda: stage.subscriber.running)
        await asyncio.to_thread(stage.outside.send, stage.topic, b"two")
        await eventually(lambda: stage.told.count("killed") == 2, 20)
        await eventually(stage_is_done(stage), 10)
        assert {record.value() for record in await stage.dead()} == {b"one", b"two"}


class Broken(BaseMiddleware[Any, Any]):
    """A middleware of the user's that fails before any handler is called."""

    async def on_receive(self) -> None:
        """Raise."""
        raise ValueError("broken")


async def test_a_record_that_never_reached_its_handler_is_not_passed_by(kafka: MockKafka) -> None:
    async with stage_on(kafka, "guarded", b"one", middlewares=[Broken]) as stage:
        await eventually(lambda: not stage.subscriber.running, 10)
        assert await stage.left() == 1
        assert await stage.dead() == []


class Cancelling:
    """A listener that waits for something that somebody cancels."""

    async def on_kill_success(self, message: Message) -> None:
        """Cancelled, but not by whoever stops the consumer."""
        waited_for = asyncio.ensure_future(asyncio.Event().wait())
        waited_for.cancel()
        await waited_for


async def test_a_cancellation_out_of_a_hook_changes_nothing(kafka: MockKafka) -> None:
    async with stage_on(kafka, "hooked", b"one", b"two", more=(Cancelling(),)) as stage:
        await eventually(stage_is_done(stage), 10)
        assert stage.told == ["killed", "killed"]
        assert stage.subscriber.running


class Cancelled(BaseMiddleware[Any, Any]):
    """A middleware of the user's that lets a cancellation out."""

    async def on_receive(self) -> None:
        """Raise."""
        raise asyncio.CancelledError


async def test_a_cancellation_that_is_no_shutdown_stops_consuming_visibly(
    kafka: MockKafka,
) -> None:
    with structlog.testing.capture_logs() as lines:
        async with stage_on(kafka, "cancelled", b"one", middlewares=[Cancelled]) as stage:
            await eventually(lambda: not stage.subscriber.running, 10)
            await eventually(lambda: stage.subscriber.consumer is None, 5)
            assert await stage.left() == 1
    (line,) = [line for line in lines if line.get("action") == "kafka_stopped"]
    assert "CancelledError" in line["event"]


async def test_a_receipt_is_never_asked_of_kafka(kafka: MockKafka) -> None:
    forged = marked(Replayed("0" * 16, 1, "0" * 32), "receipts", b"", Seal())
    async with stage_on(kafka, "receipts", end=Status.OK) as stage:
        await asyncio.to_thread(stage.outside.send, stage.topic, b"x", [(REPLAY, forged.encode())])
        await eventually(stage_is_done(stage), 10)
        assert stage.told == ["processed"]
        assert await stage.dead() == []


async def test_whatever_a_record_holds_it_is_in_the_dlq_as_it_was(kafka: MockKafka) -> None:
    records: list[tuple[bytes | None, list[tuple[str, bytes | None]]]] = [
        (b"\xff\xfe", [("binary", b"\xff\x00"), ("null", None), ("empty", b"")]),
        (None, [("twice", b"1"), ("twice", b"2"), (KILLS, b"\x00\x00\x00\x02")]),
        (b"", [("n" * 300, b"long")]),
    ]
    async with stage_on(kafka, "odd") as stage:
        for value, headers in records:
            await asyncio.to_thread(stage.outside.send, stage.topic, value, headers)
        await eventually(lambda: stage.told.count("killed") == len(records), 10)
        dead = await stage.dead()
    for (value, headers), record in zip(records, dead, strict=True):
        assert record.value() == value
        given = [pair for pair in list_of(record) if pair in headers]
        assert given == [pair for pair in headers if pair[0] != KILLS]
    assert dict(list_of(dead[1]))[KILLS] == b"3"


async def test_counters_as_the_java_library_writes_them(kafka: MockKafka) -> None:
    java: dict[str, Any] = {"wire": "java", "informational_headers": True}
    async with stage_on(kafka, "java", **java) as stage:
        await asyncio.to_thread(stage.outside.send, stage.topic, b"x", [], None, 1_700_000_000_000)
        await eventually(lambda: stage.told == ["killed"], 10)
        headers = dict(list_of((await stage.dead())[0]))
    assert headers[KILLS] == b"\x00\x00\x00\x01"
    assert headers["KDLQ_OrigPartition"] == b"\x00" * 4
    assert headers["KDLQ_OrigOffset"] == b"\x00" * 8
    assert headers["KDLQ_OrigTs"] == (1_700_000_000_000).to_bytes(8, "big")


async def test_a_direct_caller_is_told_what_became_of_a_message(kafka: MockKafka) -> None:
    kafka.create("direct", "direct.dlq")
    outside = Outside(kafka.address)
    await asyncio.to_thread(outside.send, "direct", b"x")
    (record,) = await asyncio.to_thread(outside.read, "direct")
    config = KDLQConfig(servers=kafka.address, dlq="direct.dlq", timeout=10 * SECOND)
    async with KDLQ(config) as kdlq:
        consumer = kdlq.consumer(lambda _message: Status.ERROR, "direct")
        kafka.refuse(PRODUCE, 1, INVALID)
        with pytest.raises(KDLQError, match=r"direct\.dlq.*failed to validate"):
            await consumer.accept(record)
        assert await consumer.accept(record) is Result.KILLED


async def test_a_killed_member_costs_one_duplicate_and_the_other_finishes(
    kafka: MockKafka,
) -> None:
    topic, partitions, letters = "shared", 2, 20
    kafka.create(topic, f"{topic}.dlq", partitions=partitions)
    outside = Outside(kafka.address)
    doomed, heir = _member(kafka, topic, dies_at=3), _member(kafka, topic)
    try:
        for number in range(letters):
            await asyncio.to_thread(
                outside.send, topic, str(number).encode(), partition=number % partitions
            )
        await eventually(lambda: doomed.poll() is not None, 15)

        async def all_committed() -> bool:
            return await asyncio.to_thread(outside.left, topic, "members", partitions) == 0

        await eventually(all_committed, 20, 0.2)
        dead = await asyncio.to_thread(outside.read, f"{topic}.dlq", partitions)
    finally:
        for member in (doomed, heir):
            member.kill()
            member.wait()
    copies = Counter(dict(list_of(record))[LETTER] for record in dead)
    assert {record.value() for record in dead} == {str(n).encode() for n in range(letters)}
    assert len(copies) == letters
    assert sum(copies.values()) - letters <= 1  # one crash


def test_what_would_lose_messages_is_refused(kafka: MockKafka) -> None:
    kdlq = KDLQ(KDLQConfig(servers=kafka.address, dlq="x.dlq"))
    broker = KafkaBroker(kafka.address)
    for policy in (AckPolicy.ACK_FIRST, AckPolicy.ACK, AckPolicy.REJECT_ON_ERROR):
        with pytest.raises(ValueError, match=r"ack_policy is not yours to set.*loses"):
            kdlq.subscriber(broker, "x", group="g", ack_policy=policy)(print)
    committing = KafkaBroker(kafka.address, config={"enable.auto.commit": True})
    with pytest.raises(ValueError, match=r"enable\.auto\.commit.*loses"):
        kdlq.subscriber(committing, "x", group="g")(_take)
    with pytest.raises(ValueError, match="needs a group"):
        kdlq.subscriber(broker, "x")(_take)
    with pytest.raises(ValueError, match="RabbitBroker is not the broker"):
        kdlq.subscriber(RabbitBroker(), "x")


def _take(_message: Message) -> None:
    """A handler."""


def stage_is_done(stage: Stage) -> Any:
    """A condition: everything is committed."""

    async def done() -> bool:
        return await stage.left() == 0

    return done


async def _stays(condition: Any) -> bool:
    for _ in range(10):
        if not condition():
            return False
        await asyncio.sleep(0.05)
    return True


def _member(kafka: MockKafka, topic: str, dies_at: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.flows.kdlq.member"]
    arguments = [kafka.address, topic, "members", str(dies_at)]
    member = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE)
    assert member.stdout is not None
    while not member.stdout.readline().startswith(b"assigned"):
        assert member.poll() is None
    return member
