"""The application's own subscribers on the simulated broker: whole ladders in milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self, cast

import aiormq
from aiormq.exceptions import ChannelNotFoundEntity, PublishError
from faststream import AckPolicy
from faststream._internal.testing.broker import change_producer, patch_broker_calls
from faststream.rabbit import RabbitBroker, TestRabbitBroker
from faststream.rabbit.response import RabbitPublishCommand
from faststream.rabbit.subscriber import RabbitSubscriber
from faststream.rabbit.testing import FakeProducer, build_message
from pamqp import commands as spec
from pamqp.header import ContentHeader

from service.core.plan import Send
from service.edge.fields import decode_table
from service.edge.letter import Letter, dress
from service.edge.post import Unroutable
from service.simulation.broker import SimulatedBroker
from service.simulation.channel import incoming, properties_of
from service.simulation.letter import Delivery

PERSISTENT = 2
FRAME = 131_072  # bytes; headers have to fit into one


class SimulatedRabbit(TestRabbitBroker[Any]):
    """Run a FastStream broker's subscribers on a simulated broker, in virtual time.

    async with SimulatedRabbit(app_broker, SimulatedBroker(topology)) as rabbit:
        await app_broker.publish(...)     # or rabbit.simulation.publish(...)
        await rabbit.advance(10)          # seconds; every handler due on the way has finished
    """

    def __init__(
        self, broker: RabbitBroker, simulation: SimulatedBroker, *, connect_only: bool = False
    ) -> None:
        super().__init__(broker, connect_only=connect_only)
        self.simulation = simulation
        self._handlers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Subscribers receive from here on."""
        await super().__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        """What still runs is cut off, as by a lost connection."""
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await super().__aexit__(*error)

    async def advance(self, seconds: float | timedelta = 0) -> None:
        """Let virtual time pass, stopping at each moment for the handlers to finish."""
        by = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        until = self.simulation.now + by
        await self.settled()
        while self.simulation.tick(until):
            await self.settled()

    async def settled(self) -> None:
        """Wait for every running handler, and for those their letters set off."""
        while self._handlers:
            await asyncio.wait(self._handlers)

    def _fake_start(self, broker: RabbitBroker, *_: Any, **__: Any) -> None:
        patch_broker_calls(broker)
        for subscriber in broker.subscribers:
            if isinstance(subscriber, RabbitSubscriber) and subscriber.calls:
                subscriber._post_start()
                self._subscribe(subscriber)

    def _subscribe(self, subscriber: RabbitSubscriber) -> None:
        no_ack = subscriber.ack_policy is AckPolicy.ACK_FIRST
        prefetch = subscriber.channel.prefetch_count if subscriber.channel is not None else None

        def receive(delivery: Delivery) -> None:
            message = incoming(self.simulation, delivery, no_ack=no_ack)
            handler = asyncio.get_running_loop().create_task(subscriber.consume(message))
            self._handlers.add(handler)
            handler.add_done_callback(self._handlers.discard)

        queue = subscriber.queue.add_prefix(subscriber._outer_config.prefix).name
        self.simulation.consume(queue, receive, prefetch=prefetch or 0, no_ack=no_ack)

    @contextmanager
    def _patch_producer(self, broker: RabbitBroker) -> Generator[None, None, None]:
        producer = SimulatedProducer(broker, self.brokers)
        producer.simulation = self.simulation
        with change_producer(broker.config.broker_config, producer):
            yield


class SimulatedProducer(FakeProducer):
    """Publishes into the simulation, with the answers of a channel that raises on a return."""

    simulation: SimulatedBroker

    async def publish(  # type: ignore[override]  # the fake it extends confirms nothing
        self, cmd: RabbitPublishCommand
    ) -> aiormq.abc.ConfirmationFrameType:
        """Confirmed and routed, or the error aio-pika would raise."""
        message = await build_message(
            message=cmd.body,
            exchange=cmd.exchange,
            routing_key=cmd.destination,
            correlation_id=cmd.correlation_id,
            headers=cmd.headers,
            reply_to=cmd.reply_to,
            serializer=self.broker.config.fd_config._serializer,
            codec=self.codec,
            id_generator=self.broker.config.id_generator,
            **cmd.message_options,
        )
        exchange, key = cmd.exchange.name, message.routing_key
        mandatory = bool(cmd.publish_options.get("mandatory", True))
        properties = properties_of(message)
        if cmd.message_options.get("persist"):
            properties["delivery_mode"] = PERSISTENT
        try:
            routed = self.simulation.publish(
                exchange, key, message.body, message.headers, properties, mandatory=mandatory
            )
        except LookupError as missing:
            raise ChannelNotFoundEntity(str(missing)) from None
        if mandatory and not routed:
            raise _returned(exchange, key, message.body)
        return spec.Basic.Ack()


def _returned(exchange: str, key: str, body: bytes) -> PublishError:
    frame = spec.Basic.Return(312, "NO_ROUTE", exchange, key)
    # The error carries a channel, which nobody asks anything once the letter is back.
    nowhere = cast(aiormq.abc.AbstractChannel, None)
    message = aiormq.abc.DeliveredMessage(frame, ContentHeader(), body, nowhere)
    return PublishError(message, frame)


class SimulatedPost:
    """A Post over the simulated broker."""

    def __init__(self, simulation: SimulatedBroker) -> None:
        self._simulation = simulation

    async def send(self, letter: Letter, send: Send) -> None:
        """Routed, or Unroutable."""
        headers, _ = decode_table(dress(letter.headers, send.marks, FRAME))
        properties = {**letter.properties, "delivery_mode": PERSISTENT}
        to = send.to
        try:
            routed = self._simulation.publish(
                to.exchange, to.routing_key, letter.body, headers, properties
            )
        except LookupError as missing:
            raise Unroutable(str(missing)) from None
        if not routed:
            raise Unroutable(f"no queue takes exchange {to.exchange!r} key {to.routing_key!r}")
