"""The event bus's subscribers: each letter of a service's queue is handed to the service's door."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import structlog
from aio_pika.abc import AbstractIncomingMessage
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage

from service.core.delivery import Delivery, Envelope
from service.core.duration import say
from service.core.history import deliveries_before
from service.core.marks import Seal, is_dropped
from service.core.outcome import Failed, Outcome, TooEarly
from service.core.verdict import Bury, Verdict, Why
from service.edge.listeners import Listeners
from service.edge.reading import unopened
from service.flows.desk import Desk
from service.flows.event_bus import pages
from service.flows.event_bus import topology as tables
from service.flows.event_bus.event import Door, Event
from service.flows.event_bus.patience import Pause, Seats
from service.flows.event_bus.policy import Rules, flow
from service.flows.event_bus.statuses import LONGEST_WAIT
from service.flows.room import Reception

SHORTEST_WAIT = timedelta(milliseconds=50)
# Every requeue counts on a quorum queue, and at its limit the letter would be given up. One that has come
# back so often is sent anew instead, which begins the count anew.
WORN = 100
MAX_RETRIES_EXCEEDED = "RABBITMQ_MESSAGE_MAX_RETRIES_EXCEEDED"

log = structlog.get_logger("dlo.event_bus")


@dataclass(frozen=True, slots=True)
class Service:
    """One service of the bus: its name, its door, and how many of its letters are in hand at once."""

    name: str
    door: Door
    prefetch: int = 5


@dataclass(frozen=True, slots=True)
class Courier:
    """Hands the letters of one service to its door, and waits where the service asks to."""

    service: Service
    desk: Desk
    wait_elsewhere: timedelta
    seats: Seats
    pause: Pause = field(default_factory=Pause)
    chance: Callable[[], float] = random.random

    async def take(self, message: RabbitMessage) -> None:
        """A letter of this service."""
        raw = message.raw_message
        try:
            await self.desk.attend(raw, partial(self._hand_over, raw))
        finally:
            self.seats.leave(raw)

    async def _hand_over(self, raw: AbstractIncomingMessage, delivery: Delivery) -> Outcome:
        await self.pause.over()
        reply = await self.service.door(event_of(raw, delivery))
        if reply.pause:
            log.info("paused", action="paused", service=self.service.name, wait=say(reply.pause))
            self.pause.prolong(reply.pause)
        match reply.outcome:
            case TooEarly(wait):
                return self._hold(raw, wait)
            case outcome:
                return outcome

    def _hold(self, raw: AbstractIncomingMessage, wait: timedelta) -> TooEarly:
        """Sleeping letters may hold half of the prefetch; those over it wait in the retry queue."""
        worn = deliveries_before(raw.headers, redelivered=bool(raw.redelivered)) >= WORN
        if worn or not self.seats.sit(raw):
            return TooEarly(self.wait_elsewhere, crowded=True)
        return TooEarly(randomised(wait, self.chance()))


def randomised(wait: timedelta, chance: float) -> timedelta:
    """Never shorter than asked for (but bounded), and up to a quarter longer: not all wake at once."""
    return min(max(wait, SHORTEST_WAIT) * (1 + chance / 4), LONGEST_WAIT)


def event_of(raw: AbstractIncomingMessage, delivery: Delivery) -> Event:
    """The letter as a service is handed it: the sender's own headers, none of the machinery's."""
    return Event(
        body=raw.body,
        message_id=raw.message_id or "",
        retries=delivery.retries,
        exchange=delivery.origin.exchange,
        routing_key=delivery.origin.routing_key,
        content_type=raw.content_type or "",
        content_encoding=raw.content_encoding or "",
        correlation_id=raw.correlation_id or "",
        type=raw.type or "",
        headers=_own(raw.headers),
    )


class Exhausted:
    """Listens for letters whose retries are spent, and says so under the document's name."""

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        match verdict, delivery.outcome:
            case Bury(why=Why.SPENT), Failed(error=error, status=status):
                log.error(
                    MAX_RETRIES_EXCEEDED,
                    action="max_retries_exceeded",
                    flow=flow,
                    letter=delivery.marks.letter,
                    queue=delivery.origin.queue,
                    retries=delivery.retries,
                    status=status,
                    error=error,
                )
            case _:
                pass

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """The broker returns letters by itself here: nobody tells us."""


def courier_of(service: Service, rules: Rules, desk: Desk) -> Courier:
    """A courier with a desk, and seats for half of what it may hold."""
    return Courier(service, desk, rules.retry_after, Seats(service.prefetch // 2))


def desk_of(service: Service, rules: Rules, reception: Reception, seal: Seal) -> Desk:
    """The desk of one service's queue."""
    desk = reception.desk(flow(service.name, rules, seal))
    return replace(desk, listeners=Listeners(reception.listeners, Exhausted()))


def subscribe(broker: RabbitBroker, courier: Courier, rules: Rules) -> None:
    """A service's subscriber. Its binding is the topology's: FastStream would add one with a key."""
    name = courier.service.name
    broker.subscriber(
        tables.work_queue(name, rules.kind),
        channel=Channel(prefetch_count=courier.service.prefetch, on_return_raises=True),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
        decoder=unopened,
        title=tables.work_name(name),
        description=pages.work_page(name),
    )(courier.take)


def _own(headers: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in headers.items() if not is_dropped(name)}
