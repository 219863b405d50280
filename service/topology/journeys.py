"""The ways letters can take through a topology: where they can stand, and where they circle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from faststream.rabbit import ExchangeType

from service.core.topic import is_pattern
from service.topology.arguments import dead_letter_exchange, dead_letter_key, time_to_live
from service.topology.routing import reached
from service.topology.tables import Binding, Topology


@dataclass(frozen=True, slots=True)
class Stop:
    """A letter with this key can stand in this queue. None: the key is anybody's."""

    queue: str
    key: str | None


def stops(topology: Topology, sends: Iterable[tuple[str, str]] = ()) -> tuple[Stop, ...]:
    """Every queue under every key we know letters to arrive with."""
    seen: dict[Stop, None] = {}
    ahead = [*_starts(topology), *_arrivals(topology, sends)]
    while ahead:
        stop = ahead.pop()
        if stop in seen:
            continue
        seen[stop] = None
        death = deaths_of(topology, stop)
        ahead += _arrivals(topology, [death] if death is not None else [])
    return tuple(sorted(seen, key=lambda stop: (stop.queue, stop.key or "")))


def deaths_of(topology: Topology, stop: Stop) -> tuple[str, str] | None:
    """Exchange and key of a letter that dies at this stop, as far as they are known."""
    queue = topology.queue(stop.queue)
    exchange, key = dead_letter_exchange(queue), dead_letter_key(queue)
    key = stop.key if key is None else key
    return None if exchange is None or key is None else (exchange, key)


def loops(topology: Topology, sends: Iterable[tuple[str, str]] = ()) -> tuple[tuple[str, ...], ...]:
    """Circles of queues that letters can go around by expiring alone; each begins at its least name."""
    found: dict[tuple[str, ...], None] = {}
    for stop in stops(topology, sends):
        for circle in _circles(topology, (stop,)):
            least = circle.index(min(circle))
            found[circle[least:] + circle[:least]] = None
    return tuple(sorted(found))


def _starts(topology: Topology) -> Iterator[Stop]:
    for queue in topology.queues:
        yield Stop(queue.name, None)
    for binding in topology.bindings:
        if topology.has_queue(binding.queue.name) and _spells_its_key(binding):
            yield Stop(binding.queue.name, binding.key)


def _spells_its_key(binding: Binding) -> bool:
    """Whether letters that come through this binding have exactly its key."""
    match binding.exchange.type:
        case ExchangeType.DIRECT:
            return True
        case ExchangeType.TOPIC:
            return not is_pattern(binding.key)
        case _:
            return False


def _arrivals(topology: Topology, addresses: Iterable[tuple[str, str]]) -> list[Stop]:
    return [
        Stop(queue.name, key)
        for exchange, key in addresses
        if topology.has_exchange(exchange)
        for queue in reached(topology, exchange, (key,))
        if topology.has_queue(queue.name)
    ]


def _circles(topology: Topology, way: tuple[Stop, ...]) -> Iterator[tuple[str, ...]]:
    """Follow expiries until the way bites its own tail at its first queue."""
    if time_to_live(topology.queue(way[-1].queue)) is None:
        return
    death = deaths_of(topology, way[-1])
    for stop in _arrivals(topology, [death] if death is not None else []):
        if stop.queue == way[0].queue:
            yield tuple(passed.queue for passed in way)
        elif stop.queue not in {passed.queue for passed in way}:
            yield from _circles(topology, (*way, stop))
