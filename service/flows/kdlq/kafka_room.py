"""KDLQ's consumers on Kafka, as the service runs them: kept at work for as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from service.core.marks import Seal
from service.core.plan import Send
from service.edge.kafka.lane import KafkaLane
from service.edge.kafka.line import in_words
from service.edge.kafka.post import KafkaPost
from service.edge.kafka.records import Wire
from service.edge.letter import Letter
from service.edge.post import NotSent, Post
from service.flows.handlers import Handler
from service.flows.kdlq import topology as tables
from service.flows.kdlq.consumers import Consumer, subscribe_kafka
from service.flows.kdlq.listening import Hooks
from service.flows.kdlq.policy import Rules, flow
from service.flows.room import Reception

if TYPE_CHECKING:
    from faststream.confluent import KafkaBroker
    from faststream.confluent.subscriber.usecase import LogicSubscriber

LOOK_AFTER = 0.5
LOG = structlog.get_logger("dlo.kafka")


@dataclass(frozen=True, slots=True)
class OnKafka:
    """One consumer: its rules, its handler, the group that shares the work, how counters are written."""

    rules: Rules
    handler: Handler
    group: str
    wire: Wire = "text"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The Kafka cluster, and how long is waited for it."""

    servers: tuple[str, ...]
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience: timedelta = timedelta(seconds=30)
    timeout: timedelta = timedelta(seconds=10)
    pause: timedelta = timedelta(seconds=2)
    grace: timedelta = timedelta(seconds=15)

    @property
    def leave(self) -> float:
        """Seconds for a consumer to finish its message, and as many to leave its group."""
        return 2 * self.grace.total_seconds()


class Sorting:
    """A post for both brokers: what was skipped goes to RabbitMQ, for the ledger; all else to Kafka."""

    def __init__(self, kafka: Post, rabbit: Post) -> None:
        self._kafka, self._rabbit = kafka, rabbit

    async def send(self, letter: Letter, send: Send) -> None:
        """As the one it belongs to."""
        skipped = send.to == tables.address(tables.SKIPPED)
        await (self._rabbit if skipped else self._kafka).send(letter, send)


class KafkaConsumers:
    """All of them, on one broker."""

    def __init__(self, consumers: tuple[OnKafka, ...], cluster: Cluster, seal: Seal) -> None:
        self._consumers, self._cluster, self._seal = consumers, cluster, seal
        self.trouble = "Kafka has not been tried yet"

    async def run(self, reception: Reception) -> None:
        """Consume until cancelled, whatever comes between."""
        while True:
            try:
                await self._consume(reception)
            except Exception as error:  # noqa: BLE001  # a service that serves and never consumes is worse
                self._say(
                    f"Kafka {','.join(self._cluster.servers)} cannot be used: {in_words(error)}"
                )
                await asyncio.sleep(self._cluster.pause.total_seconds())

    async def _consume(self, reception: Reception) -> None:
        """Where a copy cannot be sent consuming stops, and starts again later with the same record."""
        posts = {wire: self._post(wire) for wire in {each.wire for each in self._consumers}}
        broker = self._broker()
        subscribers = [
            self._subscribe(broker, each, reception, posts[each.wire]) for each in self._consumers
        ]
        try:
            while True:
                await self._reach(posts[self._consumers[0].wire])
                await self._start(broker, subscribers)
                while all(each.running for each in subscribers):  # noqa: ASYNC110  # FastStream tells nobody
                    await asyncio.sleep(LOOK_AFTER)
                self._say("consuming stopped, for a message could not be sent on; starting again")
                await asyncio.sleep(self._cluster.pause.total_seconds())
        finally:
            await self._hang_up(broker)
            await asyncio.gather(*(post.close() for post in posts.values()))

    async def _hang_up(self, broker: KafkaBroker) -> None:
        """Whatever becomes of it, and not for ever: a consumer that is stuck keeps no other from work."""
        try:
            async with asyncio.timeout(self._cluster.leave):
                await broker.stop()
        except Exception as error:  # noqa: BLE001  # its group finds out by itself that it is gone
            LOG.warning("a consumer was left behind", action="kafka_stuck", error=repr(error))

    async def _reach(self, post: KafkaPost) -> None:
        """Wait for the cluster: without it nothing is worth starting."""
        while True:
            try:
                await post.open()
            except NotSent as failure:
                self._say(str(failure))
                await asyncio.sleep(self._cluster.pause.total_seconds())
            else:
                return

    async def _start(self, broker: KafkaBroker, subscribers: list[LogicSubscriber[Any]]) -> None:
        if not broker.running:
            await broker.start()
        for each in subscribers:
            if not each.running:
                await self._left(each)
                await each.start()
        self.trouble = ""
        LOG.info("consuming", action="open", kafka=",".join(self._cluster.servers))

    async def _left(self, subscriber: LogicSubscriber[Any]) -> None:
        """Wait until it has left its group; one that cannot is given up, and its broker with it."""
        try:
            async with asyncio.timeout(self._cluster.leave):
                while subscriber.consumer is not None:  # noqa: ASYNC110  # FastStream tells nobody
                    await asyncio.sleep(LOOK_AFTER)
        except TimeoutError:
            raise ConnectionError("a consumer does not leave its group") from None

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            LOG.warning(trouble, action="kafka_away")
        self.trouble = trouble

    def _post(self, wire: Wire) -> KafkaPost:
        own = self._cluster
        return KafkaPost(
            own.servers, timeout=own.timeout.total_seconds(), wire=wire, client=own.client
        )

    def _broker(self) -> KafkaBroker:
        from faststream.confluent import KafkaBroker

        own = self._cluster
        return KafkaBroker(
            list(own.servers),
            client_id="dead-letter-office",
            graceful_timeout=own.grace.total_seconds(),
            config=dict(own.client),  # type: ignore[arg-type]  # its names are librdkafka's
            logger=None,
            apply_types=False,
        )

    def _subscribe(
        self, broker: KafkaBroker, each: OnKafka, reception: Reception, post: KafkaPost
    ) -> LogicSubscriber[Any]:
        lane = KafkaLane()
        consumers: dict[str, Consumer] = {}
        for topic in each.rules.names.taken:
            desk = replace(
                reception.desk(flow(each.rules, topic, self._seal)),
                post=Sorting(post, reception.post),
                lane=lane,
                patience=self._cluster.patience.total_seconds(),
            )
            consumers[topic] = Consumer(desk, each.rules, topic, each.handler, Hooks())
        return subscribe_kafka(broker, lane, consumers, each.group)
