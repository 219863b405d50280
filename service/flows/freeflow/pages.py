"""FreeFlow's chapter of the AsyncAPI document."""

from __future__ import annotations

from collections.abc import Iterator

from service.core import duration
from service.core.route import ReturnTo
from service.edge.pages import Chapter, Page
from service.flows.freeflow import messages
from service.flows.freeflow import topology as tables
from service.flows.freeflow.policy import Rules

INTRODUCTION = """
## FreeFlow events

Publish an event to `freeflow.events` with the key `<domain>.<what happened>` (two words: `document.created`);
it is in the queue `freeflow.<domain>`. The domains are {domains}.

A handler that fails has the event wait, {waits}, in a queue of the domain; then RabbitMQ brings it back
{back}. It carries `x-retry-count`, `x-original-routing-key` and `x-original-exchange`. After the last retry,
or where the handler refuses it, it is in `freeflow.events.dlq`, with `x-dlo-reason`.

A consumer of your own may do the same: publish the event to `freeflow.events.retry` with the key
`<domain>.<tier>` ({keys}), **mandatory** and confirmed, and acknowledge it then. RabbitMQ confirms and drops
what is sent there with a key that does not exist.
""".strip()

HANDLED = """
Events of the domain `{domain}`, new ones and those whose wait is over. The service's own handler takes
them. What another consumer rejects without requeueing goes to `freeflow.events.dlq`.
""".strip()

UNHANDLED = """
Events of the domain `{domain}`, new ones and those whose wait is over. The service has no handler for them
(`[freeflow.handlers]`): a consumer of your own takes them. What it rejects without requeueing goes to
`freeflow.events.dlq`.
""".strip()

WAITING = """
Events of the domain `{domain}` wait here {wait}, all equally long, for their retry. A consumer of your own
publishes here through `freeflow.events.retry` with the key `{domain}.{tier}`; nobody consumes from here.
""".strip()

DEAD_LETTERS = """
The final holding area for manual inspection: events whose retries are spent, that a handler refused, or
that a consumer rejected without requeueing. Each of those we buried says why in `x-dlo-reason`.
""".strip()


def chapter(rules: Rules, handled: frozenset[str]) -> Chapter:
    """What integrators need to know of FreeFlow, as its settings have it."""
    introduction = INTRODUCTION.format(
        domains=", ".join(f"`{domain}`" for domain in tables.DOMAINS),
        waits=", then ".join(map(duration.say, rules.waits)),
        back=_back(rules),
        keys=", ".join(f"`document.{tier}`" for tier in tables.TIERS),
    )
    return Chapter(introduction, dict(_pages(rules, handled)))


def _pages(rules: Rules, handled: frozenset[str]) -> Iterator[tuple[str, Page]]:
    for domain in tables.DOMAINS:
        yield tables.queue_name(domain), _events(domain, rules, domain in handled)
        for tier, wait in zip(tables.TIERS, rules.waits, strict=True):
            name = tables.retry_queue(domain, tier, wait, rules.kind, rules.return_to).name
            yield (
                name,
                Page(
                    f"{domain}: the waiting room {tier}",
                    f"Let an event of {domain} wait {duration.say(wait)}",
                    "Sent persistent, mandatory and confirmed, before the failed delivery is"
                    " acknowledged.",
                    messages.WAITING,
                ),
            )
    yield tables.dead_queue(rules.kind).name, DEAD_PAGE


def _events(domain: str, rules: Rules, handled: bool) -> Page:
    if handled:
        does = "Its end, good or bad, gets one verdict: done, wait in a tier, or the dead letters."
        return Page(f"Events of {domain}", f"Handle an event of {domain}", does, messages.EVENT)
    does = f"By RabbitMQ, out of the domain's retry queues, {_back(rules)}; nothing else is sent."
    return Page(
        f"Events of {domain}", f"Return an event of {domain} after its wait", does, messages.EVENT
    )


def _back(rules: Rules) -> str:
    if rules.return_to is ReturnTo.EXCHANGE:
        return "through `freeflow.events` with the key `<domain>.retry`"
    return "to the domain's own queue alone"


DEAD_PAGE = Page(
    "Dead events",
    "Give an event up, with the reason",
    "Sent to `freeflow.events.dlx`: persistent, mandatory and confirmed.",
    messages.DEAD,
)
