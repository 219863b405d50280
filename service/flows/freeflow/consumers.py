"""FreeFlow's subscribers: hand each event to the domain's handler, and give its end one verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage

from service.core import duration
from service.core.delivery import Delivery
from service.core.marks import shorten
from service.core.outcome import Failed, Outcome
from service.edge.pages import describe
from service.edge.reading import unopened
from service.flows.desk import Desk, outcome_of_handler
from service.flows.freeflow import pages
from service.flows.freeflow import topology as tables
from service.flows.freeflow.event import Event
from service.flows.freeflow.handlers import Handler
from service.flows.freeflow.policy import Rules, heard, is_unheard, no_such_tier

LOG = structlog.get_logger("dlo.freeflow")


@dataclass(frozen=True, slots=True)
class Reader:
    """Takes the events of one domain."""

    domain: str
    desk: Desk
    handler: Handler
    rules: Rules

    async def take(self, message: RabbitMessage) -> None:
        """One event, for the first time or again."""
        raw = message.raw_message

        async def outcome(delivery: Delivery) -> Outcome:
            origin = delivery.origin
            event = Event(
                raw.body,
                origin.routing_key,
                origin.exchange,
                self.domain,
                raw.headers,
                delivery.retries,
                delivery.marks.letter,
                raw.content_type,
            )
            ended = await outcome_of_handler(self.handler(event), self.desk.clock)
            if isinstance(ended, Failed):
                LOG.info(
                    "the handler failed",
                    action="handler_failed",
                    domain=self.domain,
                    letter=event.letter,
                    error=shorten(f"{ended.kind}: {ended.error}", 256),
                )
            return understood(ended, self.rules, delivery)

        await self.desk.attend(raw, outcome)


def understood(outcome: Outcome, rules: Rules, delivery: Delivery) -> Outcome:
    """The outcome in terms of our tiers; a wish for one that does not exist is written down."""
    if is_unheard(outcome):
        assert isinstance(outcome, Failed)
        assert outcome.wish is not None
        LOG.warning(
            no_such_tier(outcome.wish),
            action="unknown_tier",
            letter=delivery.marks.letter,
            origin=delivery.origin.queue,
        )
    return heard(outcome, rules)


def subscribe(
    broker: RabbitBroker,
    desks: Mapping[str, Desk],
    handlers: Mapping[str, Handler],
    rules: Rules,
    prefetch: int,
) -> None:
    """A subscriber per domain that has a handler; no reply is ever sent, whoever asks for one."""
    for domain, handler in handlers.items():
        reader = Reader(domain, desks[domain], handler, rules)
        broker.subscriber(
            tables.domain_queue(domain, rules.kind),
            tables.EVENTS,
            channel=Channel(prefetch_count=prefetch, on_return_raises=True),
            ack_policy=AckPolicy.MANUAL,
            no_reply=True,
            decoder=unopened,
            title=tables.queue_name(domain),
            description=pages.HANDLED.format(domain=domain),
        )(reader.take)
    announce(broker, rules, frozenset(handlers))


def announce(broker: RabbitBroker, rules: Rules, handled: frozenset[str]) -> None:
    """The other channels, for the AsyncAPI document; the sending itself is the post's."""
    describe(broker, pages.chapter(rules, handled))
    for domain in tables.DOMAINS:
        if domain not in handled:
            broker.publisher(
                tables.domain_queue(domain, rules.kind),
                tables.EVENTS,
                routing_key=tables.returned_key(domain),
                persist=True,
                title=tables.queue_name(domain),
                description=pages.UNHANDLED.format(domain=domain),
            )
        for tier, wait in zip(tables.TIERS, rules.waits, strict=True):
            queue = tables.retry_queue(domain, tier, wait, rules.kind, rules.return_to)
            broker.publisher(
                queue,
                tables.RETRY,
                routing_key=tables.retry_key(domain, tier),
                persist=True,
                title=queue.name,
                description=pages.WAITING.format(domain=domain, tier=tier, wait=duration.say(wait)),
            )
    broker.publisher(
        tables.dead_queue(rules.kind),
        tables.DEAD,
        persist=True,
        title=tables.dead_queue(rules.kind).name,
        description=pages.DEAD_LETTERS,
    )
