"""The KDLQ consumer: hands each message to its handler, and gives its end one verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitQueue

from service.core.delivery import Delivery
from service.core.marks import MARKER, shorten
from service.core.outcome import Done, Failed, Outcome, Refused
from service.core.verdict import Verdict
from service.edge.carry_out import Halted
from service.edge.kafka import lane as kafka
from service.edge.kafka.lane import KafkaLane
from service.edge.kafka.records import Record
from service.edge.lane import Raw, Unsettling
from service.edge.reading import unopened
from service.flows.desk import Attempted, Desk, is_ending
from service.flows.handlers import Handler
from service.flows.kdlq.counters import text_in
from service.flows.kdlq.listening import Hooks, Telling
from service.flows.kdlq.message import Message
from service.flows.kdlq.policy import Rules
from service.flows.kdlq.status import KDLQError, Result, raised, returned

if TYPE_CHECKING:
    from faststream.confluent import KafkaBroker
    from faststream.confluent.subscriber.usecase import LogicSubscriber

LOG = structlog.get_logger("dlo.kdlq")


class Consumer:
    """Takes the messages of one queue or topic."""

    def __init__(
        self, desk: Desk, rules: Rules, source: str, handler: Handler, hooks: Hooks
    ) -> None:
        self.source, self._rules = source, rules
        self._handler, self._hooks = handler, hooks
        self._desk = replace(desk, watch=self._watch)

    async def take(self, raw: Raw) -> None:
        """Handle a message and settle it; Halted where its copy cannot be sent for too long."""
        await self._desk.attend(raw, self._work(raw))

    async def accept(self, raw: Raw) -> Result:
        """Handle a message and say what became of it: once this returns, the caller may acknowledge it.

        KDLQError where the broker did not take the copy: then it must not be acknowledged.
        """
        told: list[Telling] = []

        def watch(raw: Raw, delivery: Delivery, verdict: Verdict) -> Telling:
            told.append(self._watch(raw, delivery, verdict))
            return told[-1]

        lane = Unsettling(self._desk.lane)
        desk = replace(self._desk, lane=lane, patience=0, watch=watch)
        try:
            await desk.attend(raw, self._work(raw))
        except Halted as halted:
            raise KDLQError(str(halted)) from halted
        if not told or told[-1].result is None:
            raise KDLQError("our own fault; the log says which")
        return told[-1].result

    def _work(self, raw: Raw) -> Attempted:
        async def outcome(delivery: Delivery) -> Outcome:
            message = self._message(raw, delivery)
            if self._is_foreign(message):
                self._leave_alone(message)
                return Done()
            ended = await self._ended(message)
            if isinstance(ended, Failed | Refused):
                LOG.info(
                    "the handler failed",
                    action="handler_failed",
                    source=self.source,
                    letter=message.letter,
                    error=shorten(f"{ended.kind}: {ended.error}", 256),
                )
            return ended

        return outcome

    def _leave_alone(self, message: Message) -> None:
        """It is acknowledged unhandled: this line is its trace."""
        LOG.info(
            "left to its own handler",
            action="foreign",
            source=self.source,
            letter=message.letter,
            marker=shorten(message.marker, 256),
        )

    def _is_foreign(self, message: Message) -> bool:
        """Whether it is another handler's redelivery, not ours to take. What was killed is somebody's to
        process, whoever killed it."""
        if self._rules.foreign or message.kills:
            return False
        return message.marker not in ("", self._rules.marker)

    async def _ended(self, message: Message) -> Outcome:
        """Run the handler to its end. A shutdown is not an outcome: its cancellation goes on."""
        try:
            return returned(await self._handler(message))
        except asyncio.CancelledError:
            if is_ending():
                raise
            error: Exception = RuntimeError("something the handler waited for was cancelled")
        except Exception as failure:  # noqa: BLE001  # whatever a handler raises is an outcome
            error = failure
        return raised(error, self._rules.on_exception, self._desk.clock())

    def _watch(self, raw: Raw, delivery: Delivery, verdict: Verdict) -> Telling:
        message = self._message(raw, delivery)
        hooks = Hooks() if self._is_foreign(message) else self._hooks
        return Telling(hooks, message, verdict)

    def _message(self, raw: Raw, delivery: Delivery) -> Message:
        lane = self._desk.lane
        letter, place = lane.letter(raw), lane.envelope(raw, delivery.at).place
        key, content = letter.properties.get("key"), letter.properties.get("content_type")
        return Message(
            letter.body,
            letter.headers,
            self.source,
            delivery.marks.letter,
            delivery.retries,
            delivery.kills,
            text_in(letter.headers, MARKER),
            key if isinstance(key, bytes) else None,
            place.get("partition"),
            place.get("offset"),
            place.get("timestamp"),
            content if isinstance(content, str) else None,
        )


def subscribe_kafka(
    broker: KafkaBroker,
    lane: KafkaLane,
    consumers: Mapping[str, Consumer],
    group: str,
    **options: object,
) -> LogicSubscriber[Any]:
    """One subscriber for all topics of a handler: a group's member, whose records come one by one."""

    async def take(record: Record) -> None:
        await consumers[record.topic].take(record)

    lane.subscriber = kafka.subscribe(broker, tuple(consumers), take, group, **options)
    return lane.subscriber


def subscribe(
    broker: RabbitBroker, consumer: Consumer, queue: RabbitQueue, prefetch: int, about: str = ""
) -> None:
    """A subscriber of a RabbitMQ queue; no reply is ever sent, whoever asks for one."""

    async def take(message: Any) -> None:  # as FastStream injects it, with types applied or without
        await consumer.take(message.raw_message)

    broker.subscriber(
        queue,
        channel=Channel(prefetch_count=prefetch, on_return_raises=True),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
        decoder=unopened,
        title=queue.name,
        description=about or None,
    )(take)
