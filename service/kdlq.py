"""KDLQ for a Python team's own application: redelivery and a dead letter queue around a plain function."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import aio_pika
import structlog
from aiormq.exceptions import AMQPError
from faststream.rabbit import QueueType, RabbitBroker, RabbitQueue
from prometheus_client import REGISTRY, CollectorRegistry
from yarl import URL

from service.core.marks import Seal
from service.edge import tolerance
from service.edge.declare import NotDeclared, declare
from service.edge.kafka.lane import KafkaLane
from service.edge.kafka.post import KafkaPost
from service.edge.kafka.records import Record, record_of
from service.edge.lane import RABBIT, Lane
from service.edge.listeners import Listeners
from service.edge.post import NotSent, Post, RabbitPost
from service.edge.reading import Limits
from service.edge.sentences import sentence
from service.flows.desk import Clock, Desk, utc_now
from service.flows.handlers import handler_of
from service.flows.kdlq import topology as tables
from service.flows.kdlq.config import KDLQConfig, Redelivery
from service.flows.kdlq.consumers import Consumer, subscribe, subscribe_kafka
from service.flows.kdlq.listening import Hooks
from service.flows.kdlq.message import Message
from service.flows.kdlq.policy import Rules, flow
from service.flows.kdlq.status import KDLQError, Result
from service.topology.tables import Topology
from service.web.journal import Journal
from service.web.metrics import metrics_on

if TYPE_CHECKING:
    from faststream.confluent import KafkaBroker

FAULTS = (AMQPError, NotDeclared, OSError, TimeoutError, RuntimeError, NotSent)
LARGEST_BODY = 4 * 1024 * 1024
PREFETCH = 20
Handle = TypeVar("Handle", bound=Callable[..., Any])


class OpenPost(Post, Protocol):
    """A post with a connection of its own."""

    async def open(self) -> None:
        """Connect."""

    async def close(self) -> None:
        """Hang up."""


class KDLQConsumer:
    """One message at a time, for an application that consumes by itself."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def accept(self, message: Any) -> Result:
        """Handle a message (FastStream's, aio-pika's or confluent-kafka's) and say what became of it.

        It is not acknowledged here: do so once this has returned, and not where it raises KDLQError.
        """
        raw = getattr(message, "raw_message", message)
        is_kafka = not isinstance(raw, aio_pika.abc.AbstractIncomingMessage | Record)
        return await self._consumer.accept(record_of(raw) if is_kafka else raw)


class KDLQ:
    """Redelivery and a DLQ, as the config says, for any number of handlers; for one with `redelivery`.

    kdlq = KDLQ(config)
    app = FastStream(broker, lifespan=kdlq.lifespan)


    @kdlq.subscriber(broker, "orders")
    async def handle(message: Message) -> Status | None: ...
    """

    def __init__(
        self,
        config: KDLQConfig,
        *,
        kind: QueueType = QueueType.CLASSIC,
        max_body: int = LARGEST_BODY,
        registry: CollectorRegistry = REGISTRY,
        post: Post | None = None,
        clock: Clock = utc_now,
    ) -> None:
        tolerance.install()
        self.config, self._kind, self._clock = config, kind, clock
        self._own = None if post is not None else _post(config)
        self._post: Post | None = post or self._own
        self._limits, self._seal = Limits(max_body), Seal(config.key.encode())
        self._listeners = Listeners(Journal(), metrics_on(registry))
        self._topology, self._redelivery = Topology(), Redelivery(config.redelivery)
        if config.is_rabbitmq and config.skipped:
            self._topology = Topology(queues=(tables.user_queue(config.skipped, kind),))

    def consumer(self, handler: Callable[..., Any], source: str) -> KDLQConsumer:
        """A consumer for direct use: `await consumer.accept(message)`."""
        rules = self._rules(handler, source)
        lane = RABBIT if self.config.is_rabbitmq else KafkaLane()
        return KDLQConsumer(self._consumer(rules, source, handler, lane))

    def subscriber(
        self, broker: RabbitBroker | KafkaBroker, source: str, **options: Any
    ) -> Callable[[Handle], Handle]:
        """Subscribe a function to a queue or topic of this broker, and to the redelivery one.

        RabbitMQ takes `prefetch`; Kafka `group` and the options of FastStream's subscriber, but those
        with which messages would be lost.
        """
        is_rabbitmq = isinstance(broker, RabbitBroker)
        if is_rabbitmq is not self.config.is_rabbitmq:
            raise ValueError(
                f"{type(broker).__name__} is not the broker that KDLQConfig.servers names"
            )

        def decorate(handler: Handle) -> Handle:
            rules = self._rules(handler, source)
            self._redelivery.take(handler, options.get("group", ""))
            if isinstance(broker, RabbitBroker):
                self._on_rabbitmq(broker, rules, handler, **options)
            else:
                self._on_kafka(broker, rules, handler, **options)
            return handler

        return decorate

    def lifespan(self, app: Any = None) -> AbstractAsyncContextManager[None]:
        """For `FastStream(broker, lifespan=kdlq.lifespan)`; ends the application where the broker
        cannot be used, with a sentence that says why."""
        return self._opened()

    async def __aenter__(self) -> Self:
        """Declare what is missing and open the post; KDLQError where that cannot be done."""
        try:
            await self._declare()
            if self._own is not None:
                await self._own.open()
        except FAULTS as error:
            raise KDLQError(self._sentence(error)) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait for what is on its way, and hang up."""
        if self._own is not None:
            await self._own.close()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        try:
            await self.__aenter__()
        except KDLQError as error:
            sys.exit(str(error))
        try:
            yield
        finally:
            await self.__aexit__()

    def _on_rabbitmq(
        self,
        broker: RabbitBroker,
        rules: Rules,
        handler: Callable[..., Any],
        prefetch: int = PREFETCH,
    ) -> None:
        for name in rules.names.taken:
            consumer = self._consumer(rules, name, handler, RABBIT)
            subscribe(broker, consumer, self.queue(name), prefetch)

    def _on_kafka(
        self,
        broker: KafkaBroker,
        rules: Rules,
        handler: Callable[..., Any],
        group: str = "",
        **options: Any,
    ) -> None:
        if not group:
            raise ValueError(
                'a Kafka subscriber needs a group: kdlq.subscriber(..., group="orders")'
            )
        lane = KafkaLane()
        consumers = {name: self._consumer(rules, name, handler, lane) for name in rules.names.taken}
        subscribe_kafka(broker, lane, consumers, group, **options)

    def queue(self, name: str) -> RabbitQueue:
        """A queue of the user's, as it stands."""
        return tables.user_queue(name, self._kind)

    def _rules(self, handler: Callable[..., Any], source: str) -> Rules:
        name = getattr(handler, "__qualname__", type(handler).__qualname__)
        rules = self.config.rules(source, f"{handler.__module__}:{name}")
        if self.config.is_rabbitmq:
            self._topology += tables.tables((rules.names,), self._kind)
        return rules

    def _consumer(
        self, rules: Rules, source: str, handler: Callable[..., Any], lane: Lane
    ) -> Consumer:
        taking = handler_of(handler, Message, rules.marker, "message")
        assert self._post is not None
        patience = None if self.config.is_rabbitmq else self.config.patience.total_seconds()
        desk = Desk(
            flow(rules, source, self._seal, self._topology),
            self._post,
            self._limits,
            self._listeners,
            self._mend,
            self._clock,
            lane,
            patience,
        )
        return Consumer(desk, rules, source, taking, Hooks(self.config.listeners))

    async def _declare(self) -> None:
        if not self.config.is_rabbitmq or not self._topology.queues or self._own is None:
            return
        connection = await aio_pika.connect(self.config.addresses[0], timeout=10)
        async with connection:
            await declare(self._topology, connection)

    async def _mend(self) -> None:
        """Somebody took a queue away while letters were moving."""
        try:
            await self._declare()
        except FAULTS as error:
            structlog.get_logger("dlo.kdlq").warning(self._sentence(error), action="not_mended")

    def _sentence(self, error: BaseException) -> str:
        if self.config.is_rabbitmq:
            return sentence(error, self.config.addresses[0])
        return str(error)


def _post(config: KDLQConfig) -> OpenPost:
    seconds = config.timeout.total_seconds()
    if config.is_rabbitmq:
        url = URL(config.addresses[0]).update_query(name="kdlq post", heartbeat="10")
        return RabbitPost(str(url), timeout=seconds, ours=frozenset())
    return KafkaPost(config.addresses, timeout=seconds, wire=config.wire, client=config.client)
