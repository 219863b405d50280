"""The central processor's subscribers: read, judge, plan, carry out; then tell whoever listens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from aio_pika.abc import AbstractIncomingMessage
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage

from service.core import duration
from service.core.delivery import Delivery, Envelope, without_origin
from service.core.judge import judge
from service.core.outcome import Refused
from service.core.plan import Plan, plan
from service.core.verdict import Why
from service.edge.carry_out import Mend, Unsettled, carry_out
from service.edge.listeners import Listeners
from service.edge.pages import describe
from service.edge.post import Post
from service.edge.reading import Limits, envelope_of, fault_in, letter_of, unopened
from service.flows.dlq_processor import pages
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules, send_back
from service.flows.flow import Flow
from service.topology.tables import DEFAULT

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clerk:
    """Takes every failed letter and gives it one verdict; takes it again when its wait is over."""

    flow: Flow
    find: FindRoute
    post: Post
    limits: Limits
    listeners: Listeners
    mend: Mend
    clock: Clock = utc_now

    async def take(self, message: RabbitMessage) -> None:
        """A letter that was dead-lettered to us."""
        await self._never_stuck(self._take, message.raw_message)

    async def give_back(self, message: RabbitMessage) -> None:
        """A letter whose wait is over."""
        await self._never_stuck(self._give_back, message.raw_message)

    async def _take(self, raw: AbstractIncomingMessage, envelope: Envelope) -> None:
        delivery = self._fault(raw, self.flow.count(envelope))
        verdict = judge(delivery, self.flow.policy(delivery.origin.routing_key))
        await self._carry_out(plan(verdict, delivery, self.flow.ways, self.flow.seal), raw)
        self.listeners.judged(self.flow.name, delivery, verdict)

    async def _give_back(self, raw: AbstractIncomingMessage, envelope: Envelope) -> None:
        delivery, back = send_back(envelope, self.flow, self.find)
        if back is None:
            await self._bury(delivery, raw)
        elif await self._carry_out(back, raw) is back:
            self.listeners.returned(self.flow.name, delivery, envelope)
        else:
            self.listeners.unreturned(self.flow.name, delivery)

    async def _never_stuck(
        self,
        handle: Callable[[AbstractIncomingMessage, Envelope], Awaitable[None]],
        raw: AbstractIncomingMessage,
    ) -> None:
        """A letter on which our own code stumbles goes to people: it must not hold up the others."""
        envelope = envelope_of(raw, self.clock())
        try:
            await handle(raw, envelope)
        except Unsettled as lost:
            self.listeners.unsettled(self.flow.name, str(lost))
        except Exception as bug:  # noqa: BLE001  # whatever it is, the letter is kept
            reason = f"our own fault: {type(bug).__name__}: {bug}"
            stumbled = without_origin(envelope, self.flow.name, reason)
            await self._bury(stumbled.ended(Refused(reason, Why.OUR_FAULT)), raw)

    async def _bury(self, delivery: Delivery, raw: AbstractIncomingMessage) -> None:
        verdict = judge(delivery, self.flow.policy(""))
        await self._carry_out(plan(verdict, delivery, self.flow.ways, self.flow.seal), raw)
        self.listeners.judged(self.flow.name, delivery, verdict)

    def _fault(self, raw: AbstractIncomingMessage, delivery: Delivery) -> Delivery:
        fault = fault_in(raw, self.limits)
        return delivery if fault is None else delivery.ended(fault)

    async def _carry_out(self, todo: Plan, raw: AbstractIncomingMessage) -> Plan:
        return await carry_out(todo, raw, letter_of(raw), self.post, self.mend)


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
