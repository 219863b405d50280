"""The event bus's chapter of the AsyncAPI document, for producers and for services in any language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from faststream.rabbit import RabbitBroker

from service.core import duration
from service.edge.pages import Chapter, Page, Parameter, describe
from service.flows.event_bus import messages
from service.flows.event_bus import topology as tables
from service.flows.event_bus.policy import Rules
from service.topology.tables import DEFAULT

INTRODUCTION = """
## The event bus

**Producers** publish an event to `{{prefix}}.main-exchange` (fanout): every service of that prefix gets a
copy. The prefix is a service's name before its first hyphen (`wms-cincout` → `wms`; a name without
one → `default`).

**Services** take events by HTTP: each is POSTed to the service's endpoint, body and content type as they
were published, with `x-message-id`, `x-correlation-id`, `x-event-type`, `x-original-exchange`,
`x-original-routing-key` and `x-retry-count` (0 at first). The status of the answer decides:

| status | what becomes of the event |
|---|---|
| 2xx | delivered |
| 409, 429, 5xx | retried |
| 425 | held for `processAfterDelayMs` of the answer's JSON, or its `Retry-After`; spends no attempt |
| other 4xx | retried; with `refuse_client_errors = true` a dead letter at once |
| anything else, no answer in time, no connection | retried |

A retry comes after {wait}, to the failing service alone, {often}; then the event
lies in `{{prefix}}.dlq.{{service}}`. `Retry-After` on 429 and 503 pauses all deliveries to that service,
60 s at most, so that the events behind it spend no attempts. An event may come twice: use `x-message-id`.
""".strip()

WORK = """
The events of `{service}`, by way of `{main}`. Each is handed to the service; one that it does not take
is rejected, and RabbitMQ brings it to `{retry}`. To retry a dead event by hand, move it here.
""".strip()
WAIT = """
Events that failed wait here {wait}, all equally long, and then RabbitMQ brings them back to `{work}`,
and to no other queue. The service itself publishes here only events that came too early while too many
others of them were held already. Nobody consumes from here.
""".strip()
DEAD = """
The dead events of `{service}`, for people: each is here once, with its last status and error. To send one
back, fix the cause and move it, headers and all, to `{work}`: the count goes on, so it gets one attempt.
To give it all its retries anew, move it without `x-retry-count` and the `x-dlo-…` headers.
""".strip()

# Where the settings name no service yet, the document shows what one would have.
PARAMETERS = {
    "prefix": Parameter("The service's name before its first hyphen, or `default`.", ("wms",)),
    "service": Parameter("The service's whole name.", ("wms-cincout",)),
}


def announce(broker: RabbitBroker, services: Iterable[str], rules: Rules) -> None:
    """What is sent, for the AsyncAPI document; the sending itself is the post's and the broker's."""
    named = tuple(services)
    describe(broker, chapter(named, rules))
    for service in named:
        _publishers(broker, service, rules)
    if not named:
        _publishers_to_be(broker, rules)


def chapter(services: tuple[str, ...], rules: Rules) -> Chapter:
    """What producers and services need to know, as the settings have it."""
    often = "without end" if rules.max_retries < 0 else f"{rules.max_retries} times at most"
    introduction = INTRODUCTION.format(wait=duration.say(rules.retry_after), often=often)
    pages = dict(page for name in services for page in _pages(name, rules))
    return Chapter(introduction, pages or dict(_pages_to_be(rules)))


def work_page(service: str) -> str:
    """What the document says of a service's queue."""
    main, retry = tables.main_exchange(service).name, tables.retry_name(service)
    return WORK.format(service=service, main=main, retry=retry)


def _pages(service: str, rules: Rules) -> Iterator[tuple[str, Page]]:
    yield (
        tables.work_name(service),
        Page(
            f"Events for {service}",
            f"Hand an event to {service}",
            "Acknowledged when the service has taken it, or when RabbitMQ has confirmed its dead letter.",
            messages.EVENT,
        ),
    )
    yield tables.retry_name(service), _waiting(f"Waiting room of {service}", rules)
    yield tables.dead_name(service), _dead(f"Dead events of {service}")


def _pages_to_be(rules: Rules) -> Iterator[tuple[str, Page]]:
    yield "event-bus-retry-queue", _waiting("Waiting room of a service", rules, PARAMETERS)
    yield "event-bus-dlq", _dead("Dead events of a service", PARAMETERS)


def _waiting(title: str, rules: Rules, parameters: Mapping[str, Parameter] = {}) -> Page:
    return Page(
        title,
        f"Let an event that came too early wait {duration.say(rules.retry_after)}",
        "Sent persistent, mandatory and confirmed, before the delivery is acknowledged.",
        messages.WAITING,
        parameters,
    )


def _dead(title: str, parameters: Mapping[str, Parameter] = {}) -> Page:
    return Page(
        title,
        "Give an event up, with its last status and error",
        "Sent through the default exchange: persistent, mandatory and confirmed.",
        messages.DEAD,
        parameters,
    )


def _publishers(broker: RabbitBroker, service: str, rules: Rules) -> None:
    wait, work = duration.say(rules.retry_after), tables.work_name(service)
    broker.publisher(
        tables.retry_queue(service, rules.retry_after, rules.kind),
        tables.retry_exchange(service),
        routing_key=tables.RETRY_KEY,
        persist=True,
        title=tables.retry_name(service),
        description=WAIT.format(wait=wait, work=work),
    )
    broker.publisher(
        tables.dead_queue(service, rules.kind),
        persist=True,
        title=tables.dead_name(service),
        description=DEAD.format(service=service, work=work),
    )


def _publishers_to_be(broker: RabbitBroker, rules: Rules) -> None:
    work, wait = "{prefix}.queue.{service}", duration.say(rules.retry_after)
    rooms = {
        "event-bus-retry-queue": ("{prefix}.retry-queue.{service}", WAIT),
        "event-bus-dlq": ("{prefix}.dlq.{service}", DEAD),
    }
    for title, (address, about) in rooms.items():
        broker.publisher(
            exchange=DEFAULT,
            routing_key=address,
            persist=True,
            title=title,
            description=about.format(wait=wait, work=work, service="{service}"),
        )
