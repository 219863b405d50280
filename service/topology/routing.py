"""Which queues a letter reaches: direct, topic, fanout, headers and the default exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from faststream.rabbit import ExchangeType, RabbitExchange, RabbitQueue

from service.core.topic import matches
from service.topology.tables import DEFAULT, Topology

NO_HEADERS: Mapping[str, object] = {}


def reached(
    topology: Topology,
    exchange: str,
    keys: Iterable[str],
    headers: Mapping[str, object] = NO_HEADERS,
) -> tuple[RabbitQueue, ...]:
    """The queues a letter lands in, each once, however many bindings and keys lead there."""
    found: dict[str, RabbitQueue] = {}
    for key in keys:
        for queue in _behind(topology, exchange, key, headers, frozenset()):
            found.setdefault(queue.name, queue)
    return tuple(found.values())


def _behind(
    topology: Topology,
    exchange: str,
    key: str,
    headers: Mapping[str, object],
    passed: frozenset[str],
) -> Iterator[RabbitQueue]:
    if exchange == DEFAULT.name:
        yield from (queue for queue in topology.queues if queue.name == key)
        return
    for binding in topology.bindings:
        wanted = binding.queue.bind_arguments or {}
        if binding.exchange.name == exchange and takes(
            binding.exchange, binding.key, wanted, key, headers
        ):
            yield binding.queue
    # An exchange may stand behind another one; RabbitMQ walks such loops once, and so do we.
    for inner in topology.exchanges:
        if (
            inner.bind_to is not None
            and inner.bind_to.name == exchange
            and inner.name not in passed
            and takes(inner.bind_to, inner.routing(), inner.bind_arguments or {}, key, headers)
        ):
            yield from _behind(topology, inner.name, key, headers, passed | {exchange})


def takes(
    exchange: RabbitExchange,
    bound: str,
    wanted: Mapping[str, object],
    key: str,
    headers: Mapping[str, object] = NO_HEADERS,
) -> bool:
    """Whether one binding of this exchange takes a letter with this key and these headers."""
    match exchange.type:
        case ExchangeType.FANOUT:
            return True
        case ExchangeType.TOPIC:
            return matches(bound, key)
        case ExchangeType.HEADERS:
            return _wears(wanted, headers)
        case ExchangeType.DIRECT:
            return bound == key
        case other:
            raise LookupError(
                f"exchange {exchange.name!r} is of type {other.value!r}, which is not known here:"
                " use direct, topic, fanout or headers"
            )


def _wears(wanted: Mapping[str, object], headers: Mapping[str, object]) -> bool:
    pairs = [(name, value) for name, value in wanted.items() if not name.startswith("x-")]
    worn = [name in headers and value in (None, headers[name]) for name, value in pairs]
    return any(worn) if wanted.get("x-match", "all") == "any" else all(worn)
