"""FreeFlow's exchanges, domain queues and retry queues, as the document writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from faststream.rabbit import ExchangeType, QueueType, RabbitExchange, RabbitQueue

from service.core.plan import Address
from service.core.route import ReturnTo
from service.topology.tables import (
    DEFAULT,
    Arguments,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

DOMAINS = ("user", "auth", "alarm", "document", "workflow", "notification", "audit")
# A tier's name is its documented wait; queues and keys are called by it, however long the settings
# let letters wait there.
TIERS = ("30s", "5m", "30m")
# On RabbitMQ 4 a quorum queue drops a letter after 20 returns, and -1 ("never") kills at the first
# one on 3.10. So: a number nobody reaches by hand.
MANY = 100_000

EVENTS = RabbitExchange("freeflow.events", type=ExchangeType.TOPIC)
RETRY = RabbitExchange("freeflow.events.retry", type=ExchangeType.DIRECT)
DEAD = RabbitExchange("freeflow.events.dlx", type=ExchangeType.FANOUT)

Waits = tuple[timedelta, ...]


def queue_name(domain: str) -> str:
    """`freeflow.document`."""
    return f"freeflow.{domain}"


def retry_key(domain: str, tier: str) -> str:
    """`document.5m`: what a consumer publishes a retry with."""
    return f"{domain}.{tier}"


def returned_key(domain: str) -> str:
    """`document.retry`: what a letter comes back with; the binding `document.*` takes it."""
    return f"{domain}.retry"


def retry_address(domain: str, tier: str) -> Address:
    """Where a letter of this domain waits; one that does not exist is an error before anything is
    acknowledged, for the broker would confirm it and drop it."""
    if domain not in DOMAINS or tier not in TIERS:
        raise LookupError(f"there is no retry queue for {retry_key(domain, tier)}")
    return Address(RETRY.name, retry_key(domain, tier))


def dead_address(domain: str) -> Address:
    """To the dead letters; the exchange is a fanout, the key is only for people."""
    return Address(DEAD.name, f"{domain}.dead")


def domain_queue(domain: str, kind: QueueType) -> RabbitQueue:
    """The domain's events; its dead-letter exchange is the net for bare rejects."""
    return RabbitQueue(  # type: ignore[call-overload, no-any-return]  # the kind is a setting, not a literal
        queue_name(domain),
        queue_type=kind,
        routing_key=f"{domain}.*",
        arguments=dead_letters_to(DEAD, None, kind) | _limit(kind),
    )


def retry_queue(
    domain: str, tier: str, wait: timedelta, kind: QueueType, return_to: ReturnTo
) -> RabbitQueue:
    """Letters of the domain wait here and come back: to the exchange as written, or to the queue."""
    back = (
        (EVENTS, returned_key(domain))
        if return_to is ReturnTo.EXCHANGE
        else (DEFAULT, queue_name(domain))
    )
    return durable_queue(f"freeflow.{domain}.retry.{tier}", expires_to(*back, wait, kind), kind)


def dead_queue(kind: QueueType) -> RabbitQueue:
    """The final holding area for manual inspection."""
    return durable_queue("freeflow.events.dlq", _limit(kind), kind)


def sends() -> Iterator[Address]:
    """Every address that letters are sent to, by us or by those who publish events."""
    for domain in DOMAINS:
        yield Address(EVENTS.name, f"{domain}.created")
        yield dead_address(domain)
        yield from (retry_address(domain, tier) for tier in TIERS)


def tables(waits: Waits, kind: QueueType, return_to: ReturnTo = ReturnTo.EXCHANGE) -> Topology:
    """Everything this flow declares."""
    dead = dead_queue(kind)
    tables = Topology((EVENTS, RETRY, DEAD), (dead,), (Binding(DEAD, dead),))
    for domain in DOMAINS:
        tables += _domain(domain, waits, kind, return_to)
    return tables


def _domain(domain: str, waits: Waits, kind: QueueType, return_to: ReturnTo) -> Topology:
    events = domain_queue(domain, kind)
    waiting = {
        tier: retry_queue(domain, tier, wait, kind, return_to)
        for tier, wait in zip(TIERS, waits, strict=True)
    }
    keys = tuple(Binding(RETRY, queue, retry_key(domain, tier)) for tier, queue in waiting.items())
    return Topology(
        queues=(events, *waiting.values()),
        bindings=(Binding(EVENTS, events, events.routing_key), *keys),
    )


def _limit(kind: QueueType) -> Arguments:
    return {"x-delivery-limit": MANY} if kind is QueueType.QUORUM else {}
