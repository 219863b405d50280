"""The central processor's subscribers: read, judge, plan, carry out; then tell whoever listens."""

from __future__ import annotations

from dataclasses import dataclass

from aio_pika.abc import AbstractIncomingMessage
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage

from service.core import duration
from service.core.delivery import Delivery, Envelope
from service.core.outcome import Outcome
from service.edge.pages import describe
from service.edge.reading import unopened
from service.flows.desk import Desk
from service.flows.dlq_processor import pages
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules, send_back
from service.topology.tables import DEFAULT


@dataclass(frozen=True, slots=True)
class Clerk:
    """Takes every failed letter and gives it one verdict; takes it again when its wait is over."""

    desk: Desk
    find: FindRoute

    async def take(self, message: RabbitMessage) -> None:
        """A letter that was dead-lettered to us: how it ended, the broker has written down."""
        await self.desk.attend(message.raw_message, _as_it_died)

    async def give_back(self, message: RabbitMessage) -> None:
        """A letter whose wait is over."""
        await self.desk.never_stuck(message.raw_message, self._give_back)

    async def _give_back(self, raw: AbstractIncomingMessage, envelope: Envelope) -> None:
        flow, listeners = self.desk.flow, self.desk.listeners
        delivery, back = send_back(envelope, flow, self.find)
        if back is None:
            await self.desk.conclude(raw, delivery)
            return
        done = await self.desk.carry_out(raw, back)
        if done is back:
            listeners.returned(flow.name, delivery, envelope)
        elif done is back.later:
            listeners.postponed(flow.name, delivery)
        else:
            listeners.unreturned(flow.name, delivery)


async def _as_it_died(delivery: Delivery) -> Outcome:
    return delivery.outcome


def subscribe(broker: RabbitBroker, clerk: Clerk, rules: Rules, prefetch: int) -> None:
    """The clerk's subscribers. No reply is ever sent: a stranger's `reply_to` would choose where to."""

    def own_channel() -> Channel:
        return Channel(prefetch_count=prefetch, on_return_raises=True)

    broker.subscriber(
        tables.retry_queue(rules.kind),
        tables.RETRY,
        channel=own_channel(),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
        decoder=unopened,
        title="retry-queue",
        description=pages.RETRY_QUEUE,
    )(clerk.take)
    for number, _ in enumerate(rules.tiers, start=1):
        broker.subscriber(
            tables.returned_queue(number, rules.kind),
            tables.retry_exchange(number),
            channel=own_channel(),
            ack_policy=AckPolicy.MANUAL,
            no_reply=True,
            decoder=unopened,
            title=f"retry-queue-{number}",
            description=pages.RETURNED_QUEUE.format(tier=number),
        )(clerk.give_back)
    announce(broker, rules)


def announce(broker: RabbitBroker, rules: Rules) -> None:
    """What the clerk sends, for the AsyncAPI document; the sending itself is the post's."""
    describe(broker, pages.chapter(rules))
    for number, wait in enumerate(rules.tiers, start=1):
        broker.publisher(
            tables.delay_queue(number, wait, rules.kind),
            tables.DELAY,
            routing_key=pages.delay_address(number),
            persist=True,
            title=f"queue.delay.{number}",
            description=pages.DELAY_QUEUE.format(tier=number, wait=duration.say(wait)),
        )
    broker.publisher(
        tables.dead_queue(rules.kind),
        tables.DEAD,
        persist=True,
        title="dlq-queue",
        description=pages.DEAD_QUEUE,
    )
    broker.publisher(
        exchange=DEFAULT,
        routing_key="{queue}",
        persist=True,
        title=pages.ORIGIN,
        description=pages.ORIGIN_QUEUE,
    )
