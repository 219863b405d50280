"""The Kafka lane: FastStream's confluent flavour, with nothing of what loses letters in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, assert_never

import structlog
from faststream import AckPolicy

from service.core.delivery import Envelope
from service.core.outcome import Refused
from service.core.plan import Settle
from service.core.verdict import Why
from service.edge.carry_out import Halted, Unsettled
from service.edge.kafka.needed import demand
from service.edge.kafka.records import Record, envelope_of, record_of
from service.edge.lane import Raw
from service.edge.reading import Limits, unopened

if TYPE_CHECKING:
    from confluent_kafka import Message
    from faststream.confluent import KafkaBroker, KafkaMessage
    from faststream.confluent.subscriber.usecase import LogicSubscriber

LOG = structlog.get_logger("dlo.kafka")
Take = Callable[[Record], Awaitable[None]]
OURS = {
    "ack_policy": "the offset is committed after the copy is confirmed, any other policy loses messages",
    "parser": "FastStream's own loses messages whose headers are not UTF-8",
    "decoder": "a body that cannot be decoded would never reach the DLQ",
    "batch": "each message has its own end",
    "max_workers": "a commit covers all before it",
    "no_reply": "a stranger's message would choose where the reply goes",
    "codec": "a body that cannot be decoded would never reach the DLQ",
    "partitions": "topics are subscribed to by the group",
}
COMMITS = ("enable.auto.commit",)


class KafkaLane:
    """Reads records, and ends a delivery by committing past it, or by seeking back."""

    def __init__(self) -> None:
        self.subscriber: LogicSubscriber[Any] | None = None
        """Whose records these are; without one there is nothing to commit with."""

    def envelope(self, raw: Raw, at: datetime) -> Envelope:
        """What the record says of itself."""
        return envelope_of(raw, at)

    def letter(self, raw: Raw) -> Record:
        """The record, ready to be sent again."""
        record: Record = raw
        return record

    def fault(self, raw: Raw, limits: Limits) -> Refused | None:
        """Why no attempt should be made with it."""
        record = self.letter(raw)
        if len(record.body) > limits.max_body:
            size = f"a body of {len(record.body)} bytes is over the limit of {limits.max_body}"
            return Refused(size, Why.TOO_LARGE)
        return Refused(record.fault, Why.UNREADABLE) if record.fault else None

    async def settle(self, how: Settle, raw: Raw) -> None:
        """End the delivery, or raise Unsettled; Halted where the record would be passed by."""
        record = self.letter(raw)
        try:
            match how:
                case Settle.ACK:
                    await self._commit(record)
                case Settle.REQUEUE:
                    await self._seek(record)
                case Settle.REJECT:
                    raise AssertionError("Kafka has no dead-letter exchange")
                case never:
                    assert_never(never)
        except _faults() as lost:
            failure = Halted if how is Settle.REQUEUE else Unsettled
            raise failure(repr(lost)) from lost

    async def _commit(self, record: Record) -> None:
        """This record and no other: FastStream's ack would commit whatever was polled by now."""
        from confluent_kafka import TopicPartition

        after = TopicPartition(record.topic, record.partition, record.offset + 1)
        consumer = self._consumer()
        work = lambda: consumer.consumer.commit(offsets=[after], asynchronous=False)  # noqa: E731
        # The client's own thread: librdkafka's consumer is not to be used by two at once.
        answers = await asyncio.get_running_loop().run_in_executor(consumer._thread_pool, work)
        for answer in answers or ():
            if answer.error is not None:
                raise ConnectionError(f"not committed: {answer.error}")

    async def _seek(self, record: Record) -> None:
        await self._consumer().seek(record.topic, record.partition, record.offset)

    def _consumer(self) -> Any:
        if self.subscriber is None or self.subscriber.consumer is None:
            raise ConnectionError("the consumer is closed")
        return self.subscriber.consumer


def subscribe(
    broker: KafkaBroker, topics: Sequence[str], take: Take, group: str, **options: Any
) -> LogicSubscriber[Any]:
    """A subscriber of these topics that stops rather than pass a record by."""
    demand()
    from faststream.confluent import Topic

    refuse_what_loses(broker, options)
    subscriber: LogicSubscriber[Any] = broker.subscriber(
        *(Topic(name, declare=False) for name in topics),
        group_id=group,
        ack_policy=AckPolicy.MANUAL,
        parser=_parsed,
        decoder=unopened,
        no_reply=True,
        **{"auto_offset_reset": "earliest", **options},
    )
    guard = Guard(subscriber, take)
    subscriber(guard.one)
    subscriber.consume_one = guard.consume_one  # type: ignore[method-assign]
    return subscriber


class Guard:
    """Sees to it that every record was ended by us: whatever else went wrong with one (a middleware, an
    injection), FastStream would go on with the next, whose commit passes it."""

    def __init__(self, subscriber: LogicSubscriber[Any], take: Take) -> None:
        self._subscriber, self._take = subscriber, take
        self._ended: object = None
        self._why = "it never reached its handler"
        self._stopping: asyncio.Task[None] | None = None

    async def one(self, message: Any) -> None:  # as FastStream injects it, with types or without
        """A record, to its end."""
        try:
            await self._take(record_of(message.raw_message))
        except Exception as error:  # noqa: BLE001  # whatever it is, the record is not ended
            self._why = str(error) or repr(error)
        else:
            self._ended = message.raw_message

    async def consume_one(self, msg: Message) -> None:
        """In the place of FastStream's: go on only if the record was ended."""
        try:
            await self._subscriber.consume(msg)
        except BaseException as error:
            if not _is_ending():  # else the task would be gone, and nobody told
                self._why = repr(error)
                self._stop(msg)
            raise
        if self._ended is not msg and self._subscriber.running:
            self._stop(msg)

    def _stop(self, msg: Message) -> None:
        place = f"{msg.topic()}/{msg.partition()}/{msg.offset()}"
        LOG.error(f"consuming stops: {self._why}", action="kafka_stopped", record=place)
        self._subscriber.running = False
        # Not from within: it would cancel itself, and the group would wait for a member that is gone.
        self._stopping = asyncio.ensure_future(self._subscriber.stop())


def _is_ending() -> bool:
    """Whether it is the subscriber's task that is being cancelled, and not something waited for in it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def refuse_what_loses(broker: KafkaBroker, options: Mapping[str, Any]) -> None:
    """An option that is ours to set is a fault, with the reason; so is a client that commits by itself."""
    for name, why in OURS.items():
        if name in options:
            raise ValueError(f"{name} is not yours to set here: {why}")
    given = broker.config.broker_config.connection_config.consumer_config
    for name in COMMITS:
        if given.get(name):
            raise ValueError(f"the broker's config sets {name}: {OURS['ack_policy']}")


async def _parsed(raw: Message) -> KafkaMessage:
    """Opens nothing: FastStream's parser raises for a header that is not UTF-8, and the record is lost."""
    from faststream.confluent.message import FAKE_CONSUMER, KafkaMessage

    return KafkaMessage(body=b"", raw_message=raw, consumer=FAKE_CONSUMER, is_manual=True)


def _faults() -> tuple[type[Exception], ...]:
    found: list[type[Exception]] = [ConnectionError, RuntimeError]
    with suppress(ImportError):
        from confluent_kafka import KafkaException

        found.append(KafkaException)
    return tuple(found)
