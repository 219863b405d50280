"""The event bus's exchanges, queues and bindings: the document's tables, a set per service.

A failing letter's life:
1. A producer publishes it to `wms.main-exchange`; every service of the prefix gets its own copy.
2. `wms-cincout` does not take it: it is rejected, and `wms.queue.wms-cincout` dead-letters it to
   `wms.retry-exchange.wms-cincout`.
3. It waits five seconds in `wms.retry-queue.wms-cincout` and goes back, through the default exchange,
   to `wms.queue.wms-cincout` and to no other queue.
4. After ten retries in vain it is in `wms.dlq.wms-cincout`, for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from faststream.rabbit import ExchangeType, QueueType, RabbitExchange, RabbitQueue

from service.topology.tables import (
    DEFAULT,
    Arguments,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

NO_PREFIX = "default"
RETRY_KEY = "retry"
# A quorum queue gives a letter up that came back too often: on RabbitMQ 4 after 20 times unless told
# otherwise, and -1 ("never") kills at the first return on 3.10. Here that would be the end of it: the
# round through the retry queue would have no rejection in it, and RabbitMQ drops such a letter.
MANY = 100_000


def prefix_of(service: str) -> str:
    """`wms-cincout` → `wms`; a name without a hyphen → `default`."""
    before, hyphen, _ = service.partition("-")
    return before if hyphen else NO_PREFIX


def main_exchange(service: str) -> RabbitExchange:
    """Where producers publish: every service of the prefix gets a copy."""
    return RabbitExchange(f"{prefix_of(service)}.main-exchange", type=ExchangeType.FANOUT)


def retry_exchange(service: str) -> RabbitExchange:
    """What one service did not take, and nothing of the others."""
    name = f"{prefix_of(service)}.retry-exchange.{service}"
    return RabbitExchange(name, type=ExchangeType.DIRECT)


def work_name(service: str) -> str:
    """The queue of a service."""
    return f"{prefix_of(service)}.queue.{service}"


def retry_name(service: str) -> str:
    """The queue in which its failed letters wait."""
    return f"{prefix_of(service)}.retry-queue.{service}"


def dead_name(service: str) -> str:
    """The queue of its dead letters."""
    return f"{prefix_of(service)}.dlq.{service}"


def work_queue(service: str, kind: QueueType) -> RabbitQueue:
    """The service's letters; what is rejected here waits and comes back."""
    to = dead_letters_to(retry_exchange(service), RETRY_KEY, kind)
    return durable_queue(work_name(service), to | _unlimited(kind), kind)


def retry_queue(service: str, wait: timedelta, kind: QueueType) -> RabbitQueue:
    """Failed letters wait here, all equally long, and go back to the service's queue alone."""
    to = expires_to(DEFAULT, work_name(service), wait, kind)
    return durable_queue(retry_name(service), to | _unlimited(kind), kind)


def dead_queue(service: str, kind: QueueType) -> RabbitQueue:
    """The dead letters of the service, for people."""
    return durable_queue(dead_name(service), _unlimited(kind), kind)


def tables(services: Iterable[str], wait: timedelta, kind: QueueType) -> Topology:
    """Everything this flow declares."""
    return sum((_service(name, wait, kind) for name in services), Topology())


def _service(name: str, wait: timedelta, kind: QueueType) -> Topology:
    main, retry = main_exchange(name), retry_exchange(name)
    work, waiting = work_queue(name, kind), retry_queue(name, wait, kind)
    return Topology(
        exchanges=(main, retry),
        queues=(work, waiting, dead_queue(name, kind)),
        bindings=(Binding(main, work), Binding(retry, waiting, RETRY_KEY)),
    )


def _unlimited(kind: QueueType) -> Arguments:
    return {"x-delivery-limit": MANY} if kind is QueueType.QUORUM else {}
