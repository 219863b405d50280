"""The drill: three consumers as any team might write them, one that passes, one that fails, one of each."""

from __future__ import annotations

from faststream import AckPolicy
from faststream.rabbit import Channel, QueueType, RabbitBroker, RabbitMessage, RabbitQueue
from faststream.rabbit.subscriber import RabbitSubscriber

from service.core.marks import RETRY_COUNT
from service.core.route import Route, RouteBook
from service.edge.pages import describe
from service.edge.reading import unopened
from service.flows.dlq_processor import pages
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import Rules

PASS, FAIL, FAIL_PASS = (
    queue(QueueType.CLASSIC).routing_key
    for queue in (tables.pass_queue, tables.fail_queue, tables.fail_pass_queue)
)
# The last resort, after the table and the settings: without a route the drill would only ever show
# that there is none.
ROUTES = RouteBook.of(map(Route, (PASS, FAIL, FAIL_PASS)))


class DrillFailure(Exception):
    """What a drill consumer was asked to do."""


async def accept(message: RabbitMessage) -> None:
    """`rk.test.pass`: all is well."""


async def fail(message: RabbitMessage) -> None:
    """`rk.test.fail`: always rejected."""
    raise DrillFailure("this letter always fails")


async def fail_then_pass(message: RabbitMessage) -> None:
    """`rk.test.fail.pass`: rejected first, accepted when it was retried."""
    if not message.headers.get(RETRY_COUNT):
        raise DrillFailure("this letter fails the first time")


def subscribe(broker: RabbitBroker, rules: Rules) -> None:
    """Plain consumers: an exception rejects the letter, and the queue's dead-letter exchange takes it."""

    def consumer(queue: RabbitQueue, title: str, description: str) -> RabbitSubscriber:
        return broker.subscriber(
            queue,
            tables.DRILL,
            channel=Channel(prefetch_count=10, on_return_raises=True),
            ack_policy=AckPolicy.REJECT_ON_ERROR,
            no_reply=True,
            decoder=unopened,
            title=title,
            description=description,
        )

    describe(broker, pages.drill_chapter())
    consumer(
        tables.pass_queue(rules.kind),
        "test-pass-queue",
        "Publish to `test-retry-exchange` with the key `rk.test.pass`: the letter is accepted.",
    )(accept)
    consumer(
        tables.fail_queue(rules.kind),
        "test-fail-queue",
        "Publish to `test-retry-exchange` with the key `rk.test.fail`: the letter always fails.",
    )(fail)
    consumer(
        tables.fail_pass_queue(rules.kind),
        "test-fail-pass-queue",
        "Publish to `test-retry-exchange` with the key `rk.test.fail.pass`: the letter fails at first"
        " and is accepted when it is retried.",
    )(fail_then_pass)
