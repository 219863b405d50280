"""The central processor's subscribers: read, judge, plan, carry out; then tell whoever listens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from aio_pika.abc import AbstractIncomingMessage
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage

from service.core.delivery import Delivery, Envelope, without_origin
from service.core.judge import judge
from service.core.outcome import Refused
from service.core.plan import Plan, plan
from service.core.verdict import Why
from service.edge.carry_out import Mend, Unsettled, carry_out
from service.edge.listeners import Listeners
from service.edge.post import Post
from service.edge.reading import Limits, envelope_of, fault_in, letter_of, unopened
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import FindRoute, Rules, send_back
from service.flows.flow import Flow

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
        description=RETRY_QUEUE,
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
            description=RETURNED_QUEUE,
        )(clerk.give_back)


RETRY_QUEUE = """
Every letter that a queue dead-letters to `retry-exchange` with the key `retry-routing-key` arrives
here. Point your queue at it (`x-dead-letter-exchange`, `x-dead-letter-routing-key`, by argument or by
policy); do not publish here yourself. The letter's original routing key chooses its route: with one it
waits and returns to the queue it came from, without one, or with its retries spent, it goes to
`dlq-queue`.
""".strip()

RETURNED_QUEUE = """
Letters whose wait is over; from here each returns to the queue it failed in, with `x-retry-count`,
`x-original-exchange`, `x-original-routing-key` and `x-original-queue`. Nobody else publishes here.
""".strip()
