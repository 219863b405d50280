"""A delivery of the simulated broker as aio-pika's own message: what is settled there arrives here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from aio_pika.message import IncomingMessage
from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp import commands as spec
from pamqp.header import ContentHeader

from service.simulation.broker import SimulatedBroker
from service.simulation.letter import Delivery, Headers

PROPERTIES = (
    "content_type",
    "content_encoding",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "user_id",
    "app_id",
)


class SimulatedChannel:
    """As much of a channel as a message needs to be settled."""

    is_closed = False
    connection = SimpleNamespace(basic_nack=True)

    def __init__(self, broker: SimulatedBroker, delivery: Delivery) -> None:
        self._broker = broker
        self._delivery = delivery

    async def basic_ack(self, delivery_tag: int, multiple: bool = False) -> None:
        """Done."""
        self._refuse_many(multiple)
        self._broker.ack(self._delivery)

    async def basic_nack(
        self, delivery_tag: int, multiple: bool = False, requeue: bool = True
    ) -> None:
        """Not done."""
        self._refuse_many(multiple)
        self._broker.nack(self._delivery, requeue=requeue)

    async def basic_reject(self, delivery_tag: int, *, requeue: bool = False) -> None:
        """Not wanted."""
        self._broker.reject(self._delivery, requeue=requeue)

    @staticmethod
    def _refuse_many(multiple: bool) -> None:
        if multiple:
            raise NotImplementedError("the simulated broker settles one delivery at a time")


def incoming(broker: SimulatedBroker, delivery: Delivery, *, no_ack: bool) -> IncomingMessage:
    """The message a subscriber is called with."""
    channel = SimulatedChannel(broker, delivery)
    message = DeliveredMessage(
        delivery=spec.Basic.Deliver(
            consumer_tag="simulated",
            delivery_tag=delivery.tag,
            redelivered=delivery.redelivered,
            exchange=delivery.exchange,
            routing_key=delivery.routing_key,
        ),
        header=ContentHeader(properties=_properties(delivery.headers, delivery.letter.properties)),
        body=delivery.body,
        channel=cast(AbstractChannel, channel),
    )
    return IncomingMessage(message, no_ack=no_ack)


def properties_of(message: IncomingMessage) -> dict[str, object]:
    """The properties a publisher gave its message, under the names the simulation keeps them by."""
    given = {name: getattr(message, name) for name in (*PROPERTIES, "type")}
    if given["expiration"] is not None:
        given["expiration"] = str(
            round(given["expiration"] * 1000)
        )  # seconds here, wire text there
    return {name: value for name, value in given.items() if value is not None}


def _properties(headers: Headers, properties: Headers) -> spec.Basic.Properties:
    kept = {name: properties[name] for name in PROPERTIES if name in properties}
    return spec.Basic.Properties(
        headers=dict(headers),  # type: ignore[arg-type]  # a field table, as it came
        message_type=properties.get("type"),  # type: ignore[arg-type]  # as it came
        **kept,  # type: ignore[arg-type]  # as they came
    )
