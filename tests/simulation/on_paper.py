"""A case run on the simulated broker."""

from __future__ import annotations

from datetime import timedelta

from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import Flavour
from service.simulation.letter import Delivery
from tests.simulation.cases import Fate, World, fate_of
from tests.simulation.sightings import Sightings

BUSIEST = 400


class TooBusy(Exception):
    """Copies breed copies: true on both brokers, but nobody wants to wait for it."""


def on_paper(world: World, flavour: Flavour) -> Sightings:
    """Everything the consumers of this world would see."""
    broker, seen = SimulatedBroker(world.topology(), flavour), Sightings()
    for queue, fates in world.consumed().items():
        broker.consume(queue, _consumer(broker, fates, seen))
    for number, letter in enumerate(world.case.letters):
        properties = {"expiration": letter.expiration} if letter.expiration else {}
        exchange, key = world.exchange(letter.exchange), world.key(letter.key)
        body = str(number).encode()
        seen.routed.append(broker.publish(exchange, key, body, world.headers(letter), properties))
    while broker.tick(broker.now + timedelta(seconds=1)):
        if len(broker.journal) > BUSIEST:
            raise TooBusy
    return seen


class _consumer:
    def __init__(self, broker: SimulatedBroker, fates: tuple[Fate, ...], seen: Sightings) -> None:
        self.broker, self.fates, self.seen = broker, fates, seen

    def __call__(self, delivery: Delivery) -> None:
        self.seen.add(
            delivery.queue,
            delivery.exchange,
            delivery.routing_key,
            delivery.body,
            delivery.headers,
            redelivered=delivery.redelivered,
            expiration=delivery.letter.properties.get("expiration"),
        )
        match fate_of(self.fates, delivery.headers, delivery.redelivered):
            case Fate.ACK:
                self.broker.ack(delivery)
            case Fate.REJECT:
                self.broker.reject(delivery)
            case Fate.NACK:
                self.broker.nack(delivery, requeue=False)
            case Fate.REJECT_BACK:
                self.broker.reject(delivery, requeue=True)
            case Fate.NACK_BACK:
                self.broker.nack(delivery)
            case Fate.KEEP:
                pass
