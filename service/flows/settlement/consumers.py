"""The payment story's subscribers: two workers and a monitor, each at a desk of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from faststream import AckPolicy
from faststream.rabbit import Channel, RabbitBroker, RabbitExchange, RabbitMessage, RabbitQueue

from service.core.delivery import Delivery
from service.core.outcome import Outcome
from service.edge.pages import describe
from service.edge.reading import unopened
from service.flows.desk import Desk, outcome_of_handler
from service.flows.settlement import pages
from service.flows.settlement import topology as tables
from service.flows.settlement.monitor import Monitor
from service.flows.settlement.policy import Rules
from service.flows.settlement.workers import Workers

# A crash counts a delivery for everything that was not settled. With one letter in hand that is the
# one that was being tried, and no letter dies untried of its neighbours. More hands: more processes.
ONE_AT_A_TIME = 1

Handler = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Desks:
    """Where letters of the three queues are judged."""

    created: Desk
    requested: Desk
    monitor: Desk


def subscribe(
    broker: RabbitBroker, desks: Desks, workers: Workers, monitor: Monitor, rules: Rules
) -> None:
    """One consumer per queue and process."""
    created = tables.worker_queue(tables.CREATED, rules.max_retries)
    requested = tables.worker_queue(tables.REQUESTED, rules.max_retries, rules.ttl)
    _consume(broker, created, tables.CREATED, _worker(desks.created, workers.process))
    _consume(broker, requested, tables.REQUESTED, _worker(desks.requested, workers.settle))
    _consume(
        broker,
        tables.monitor_queue(rules.kind),
        tables.dead_exchange(tables.REQUESTED),
        _watcher(desks.monitor, monitor),
    )
    announce(broker, rules)


def announce(broker: RabbitBroker, rules: Rules) -> None:
    """What the service sends, for the AsyncAPI document; the sending itself is the post's."""
    describe(broker, pages.chapter(rules))
    for exchange in (tables.CREATED, tables.REQUESTED):
        for to in (exchange, tables.dead_exchange(exchange)):
            broker.publisher(
                exchange=to,
                persist=True,
                title=to.name,
                description=pages.SENT[to.name],
            )


def _consume(
    broker: RabbitBroker,
    queue: RabbitQueue,
    exchange: RabbitExchange,
    take: Callable[[RabbitMessage], Awaitable[None]],
) -> None:
    broker.subscriber(
        queue,
        exchange,
        channel=Channel(prefetch_count=ONE_AT_A_TIME, on_return_raises=True),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
        decoder=unopened,
        title=queue.name,
        description=pages.TAKEN[queue.name],
    )(take)


def _worker(desk: Desk, handle: Handler) -> Callable[[RabbitMessage], Awaitable[None]]:
    async def take(message: RabbitMessage) -> None:
        raw = message.raw_message

        async def outcome(_delivery: Delivery) -> Outcome:
            return await outcome_of_handler(handle(raw.body), desk.clock)

        await desk.attend(raw, outcome)

    return take


def _watcher(desk: Desk, monitor: Monitor) -> Callable[[RabbitMessage], Awaitable[None]]:
    async def take(message: RabbitMessage) -> None:
        raw = message.raw_message

        async def outcome(delivery: Delivery) -> Outcome:
            return await outcome_of_handler(monitor.report(delivery, raw.body), desk.clock)

        await desk.attend(raw, outcome)

    return take
