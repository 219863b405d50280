"""KDLQ's chapter of the AsyncAPI document."""

from __future__ import annotations

from collections.abc import Iterator

from faststream.rabbit import QueueType, RabbitBroker, RabbitQueue

from service.core.duration import say
from service.edge.pages import Chapter, Page, Parameter, describe
from service.flows.kdlq import messages
from service.flows.kdlq import topology as tables
from service.flows.kdlq.policy import Rules
from service.topology.tables import DEFAULT

INTRODUCTION = """
## KDLQ

Handlers of yours on queues of yours (`[[kdlq.consumers]]`), on RabbitMQ and on Kafka. A handler returns
`OK` (or nothing), `MUST_BE_REDELIVERED` or `ERROR`, or raises. A message to be redelivered goes back to its
queue, or to the redelivery queue, with `KDLQ_Redelivered` counted up; over the limit, or after an error, it
goes to the DLQ with `KDLQ_Kills` counted up. Over that limit it is skipped: acknowledged, and a copy is in
`kdlq.skipped`.

A queue of yours that stands is never declared anew. This document has the queues on RabbitMQ; topics have the
same headers, as text.
""".strip()

TAKEN = "Messages for `{marker}`, new ones and those that are redelivered here."
DEAD = "What `{marker}` could not handle, with the reason. Process it by a consumer of its own."
WAIT = "Messages wait here {wait} and then RabbitMQ brings them to `{queue}`. Nobody consumes from here."
SKIPPED = "Copies of messages whose kills are spent, for the ledger: the only place that they are left in."

# Where the settings name no consumer yet, the document shows what one would have.
PARAMETERS = {"dlq": Parameter("The DLQ that a consumer names.", ("orders.dlq",))}
SENDING = (
    "Sent through the default exchange: persistent, mandatory and confirmed, before the message is"
    " acknowledged."
)


def taken(rules: Rules, queue: str) -> str:
    """What the document says of a queue that is consumed."""
    return TAKEN.format(marker=rules.marker, queue=queue)


def announce(broker: RabbitBroker, consumers: tuple[Rules, ...], kind: QueueType) -> None:
    """What is sent, for the AsyncAPI document; the sending itself is the post's."""
    describe(broker, Chapter(INTRODUCTION, dict(_pages(consumers))))
    for queue, about in _sent_to(consumers, kind):
        broker.publisher(queue, persist=True, title=queue.name, description=about)
    if not consumers:
        broker.publisher(
            exchange=DEFAULT,
            routing_key="{dlq}",
            persist=True,
            title="kdlq-dlq",
            description=DEAD.format(marker="a handler"),
        )


def _sent_to(consumers: tuple[Rules, ...], kind: QueueType) -> Iterator[tuple[RabbitQueue, str]]:
    """The queues that we only send to; those that are consumed have their pages as such."""
    consumed = {name for rules in consumers for name in rules.names.taken}
    for rules in consumers:
        names = rules.names
        if names.dlq not in consumed:
            yield tables.user_queue(names.dlq, kind), DEAD.format(marker=rules.marker)
        for name in dict.fromkeys(map(names.again, names.taken)) if names.delay else ():
            about = WAIT.format(wait=say(names.delay), queue=name)
            yield tables.wait_queue(name, names.delay, kind), about
    yield tables.skipped_queue(kind), SKIPPED


def _pages(consumers: tuple[Rules, ...]) -> Iterator[tuple[str, Page]]:
    for rules in consumers:
        yield rules.names.dlq, _dead(f"Dead messages of {rules.names.source}")
        if rules.names.delay:
            for name in map(rules.names.again, rules.names.taken):
                title, does = f"Waiting room of {name}", "Let a message wait for its redelivery"
                yield tables.wait_name(name), Page(title, does, SENDING, messages.MESSAGE)
    for rules in consumers:
        for name in rules.names.taken:
            does = f"Handle a message of {name}"
            yield name, Page(f"Messages of {name}", does, HANDLING, messages.MESSAGE)
    if not consumers:
        yield "kdlq-dlq", _dead("Dead messages of a consumer", PARAMETERS)
    title, does = "Skipped messages", "Leave a copy of a skipped message"
    yield tables.SKIPPED, Page(title, does, SENDING, messages.SKIPPED)


HANDLING = "Acknowledged when the handler has taken it, or when RabbitMQ has confirmed its copy."


def _dead(title: str, parameters: dict[str, Parameter] | None = None) -> Page:
    does = "Send a message to the DLQ, with the reason"
    return Page(title, does, SENDING, messages.DEAD, parameters or {})
