"""A consumer on a Kafka of our own whose every message is an error, for tests of faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from faststream.confluent import KafkaBroker

from service import KDLQ, KDLQConfig, Message, Status
from tests.kit.kafka import Outside
from tests.servers.kafka import PRODUCE, MockKafka

INVALID = 87  # an answer that Kafka's client does not try again by itself
SECOND = timedelta(seconds=1)
PROMPT: dict[str, Any] = {
    "fetch_max_wait_ms": 20,
    "session_timeout_ms": 2000,
    "heartbeat_interval_ms": 300,
}


@dataclass
class Stage:
    """A consumer whose every message is an error, on a topic of its own."""

    kafka: MockKafka
    outside: Outside
    broker: KafkaBroker
    topic: str
    told: list[str] = field(default_factory=list)

    def on_processed(self, message: Message) -> None:
        """Written down."""
        self.told.append("processed")

    def on_kill_success(self, message: Message) -> None:
        """Written down."""
        self.told.append("killed")

    def on_kill_error(self, message: Message, error: Exception) -> None:
        """Written down."""
        self.told.append("not killed")

    @property
    def subscriber(self) -> Any:
        """FastStream's."""
        return self.broker.subscribers[0]

    async def dead(self) -> list[Any]:
        """What is in the DLQ."""
        return await asyncio.to_thread(self.outside.read, f"{self.topic}.dlq")

    async def left(self) -> int:
        """How many messages are not committed."""
        return await asyncio.to_thread(self.outside.left, self.topic, self.topic)


@asynccontextmanager
async def stage_on(
    kafka: MockKafka,
    topic: str,
    *bodies: bytes,
    refusals: int = 0,
    middlewares: Any = (),
    more: tuple[object, ...] = (),
    end: Status = Status.ERROR,
    **config: Any,
) -> AsyncIterator[Stage]:
    """A consumer at work on these messages, who ends each so; so many of its copies are refused."""
    kafka.create(topic, f"{topic}.dlq")
    broker = KafkaBroker(kafka.address, logger=None, middlewares=middlewares)
    stage = Stage(kafka, Outside(kafka.address), broker, topic)
    given = {"timeout": SECOND, "patience": 20 * SECOND, **config}
    listeners = (stage, *more)
    kdlq = KDLQ(KDLQConfig(servers=kafka.address, dlq=f"{topic}.dlq", listeners=listeners, **given))

    @kdlq.subscriber(broker, topic, group=topic, **PROMPT)
    async def handle(message: Message) -> Status:
        return end

    async with kdlq:
        for body in bodies:
            await asyncio.to_thread(stage.outside.send, topic, body)
        kafka.refuse(PRODUCE, refusals, INVALID)
        await broker.start()
        yield stage
        await broker.stop()
