"""What is wrong with a topology, found before a letter is lost to it; each fault is one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from faststream.rabbit import ExchangeType, RabbitExchange, RabbitQueue

from service.topology.arguments import (
    dead_letter_exchange,
    dead_letter_key,
    is_quorum,
    text,
)
from service.topology.journeys import deaths_of, loops, stops
from service.topology.routing import reached
from service.topology.tables import DEFAULT, Topology

LONGEST = 255  # bytes: names and keys are AMQP short strings
SendTo = tuple[RabbitExchange | str, str]


class FaultKind(StrEnum):
    """The kinds of faults there are."""

    UNROUTABLE = "unroutable"
    MISSING_EXCHANGE = "missing exchange"
    DEAD_END = "dead end"
    BLANK_KEY = "blank key"
    LOOP = "loop without a rejection"
    AT_MOST_ONCE = "at most once"
    CONFLICT = "conflict"
    UNDECLARED = "undeclared"
    TOO_LONG = "too long"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: what, where, and what to do."""

    kind: FaultKind
    where: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def faults(topology: Topology, sends: Iterable[SendTo] = ()) -> tuple[Fault, ...]:
    """All faults of a topology, and of the (exchange, key) pairs that are sent to it."""
    addresses = tuple((_name(exchange), key) for exchange, key in sends)
    found = (
        *_conflicts(topology),
        *_undeclared(topology),
        *_too_long(topology, addresses),
        *_blank_keys(topology),
        *_unroutable(topology, addresses),
        *_missing_exchanges(topology),
        *_dead_ends(topology, addresses),
        *_loops(topology, addresses),
        *_at_most_once(topology),
    )
    return tuple(dict.fromkeys(found))


def _conflicts(topology: Topology) -> Iterator[Fault]:
    rows: tuple[RabbitQueue | RabbitExchange, ...] = (
        *set(topology.queues),
        *set(topology.exchanges),
    )
    counts = Counter((_noun(row), row.name) for row in rows)
    for (noun, name), count in sorted(counts.items()):
        if count > 1:
            yield Fault(
                FaultKind.CONFLICT,
                name,
                f"{noun} {name!r} is described {count} times, with different arguments:"
                " RabbitMQ refuses the second; describe it once",
            )


def _undeclared(topology: Topology) -> Iterator[Fault]:
    for binding in topology.bindings:
        if not topology.has_exchange(binding.exchange.name):
            yield _not_declared("exchange", binding.exchange.name, binding.queue.name)
        if not topology.has_queue(binding.queue.name):
            yield _not_declared("queue", binding.queue.name, binding.exchange.name)


def _not_declared(noun: str, name: str, other: str) -> Fault:
    return Fault(
        FaultKind.UNDECLARED,
        name,
        f"{noun} {name!r} is bound to {other!r} but not declared: add it to the table of {noun}s",
    )


def _too_long(topology: Topology, sends: tuple[tuple[str, str], ...]) -> Iterator[Fault]:
    words = [("queue name", queue.name) for queue in topology.queues]
    words += [("exchange name", exchange.name) for exchange in topology.exchanges]
    words += [("binding key", binding.key) for binding in topology.bindings]
    words += [("dead-letter key", dead_letter_key(queue) or "") for queue in topology.queues]
    words += [("routing key", key) for _, key in sends]
    for noun, word in words:
        if (size := len(word.encode())) > LONGEST:
            yield Fault(
                FaultKind.TOO_LONG,
                word,
                f"the {noun} {word[:40]!r}… has {size} bytes and RabbitMQ takes {LONGEST}: shorten it",
            )


def _blank_keys(topology: Topology) -> Iterator[Fault]:
    for binding in topology.bindings:
        if binding.exchange.type is ExchangeType.TOPIC and not binding.key:
            yield Fault(
                FaultKind.BLANK_KEY,
                binding.queue.name,
                f"queue {binding.queue.name!r} is bound to topic exchange {binding.exchange.name!r} with"
                " a blank key, which only takes letters with a blank key: bind the key that is sent,"
                " or `#` for all",
            )


def _unroutable(topology: Topology, sends: tuple[tuple[str, str], ...]) -> Iterator[Fault]:
    for exchange, key in sends:
        if not topology.has_exchange(exchange):
            yield _missing(exchange, f"letters with key {key!r} are sent to it")
        elif not _leads_somewhere(topology, exchange, key):
            yield Fault(
                FaultKind.UNROUTABLE,
                exchange or key,
                f"key {key!r} is sent to {_shown(exchange)} and no binding takes it:"
                f" the letter is gone{_hint(topology, exchange)}",
            )


def _missing_exchanges(topology: Topology) -> Iterator[Fault]:
    for queue in topology.queues:
        exchange = dead_letter_exchange(queue)
        if exchange is not None and not topology.has_exchange(exchange):
            yield _missing(exchange, f"queue {queue.name!r} sends its dead letters there")


def _dead_ends(topology: Topology, sends: tuple[tuple[str, str], ...]) -> Iterator[Fault]:
    for stop in stops(topology, sends):
        death = deaths_of(topology, stop)
        if death is not None and not _leads_somewhere(topology, *death):
            yield _dead_end(topology, stop.queue, death[0], f" with key {death[1]!r}")
    for queue in topology.queues:
        exchange = dead_letter_exchange(queue)
        if exchange and dead_letter_key(queue) is None and _is_bare(topology, exchange):
            yield _dead_end(topology, queue.name, exchange, "")


def _dead_end(topology: Topology, queue: str, exchange: str, key: str) -> Fault:
    return Fault(
        FaultKind.DEAD_END,
        queue,
        f"queue {queue!r} sends its dead letters to {_shown(exchange)}{key} and no binding takes them:"
        f" they are gone{_hint(topology, exchange)}",
    )


def _is_bare(topology: Topology, exchange: str) -> bool:
    """Whether an exchange of ours leads nowhere, whatever the key."""
    ours = topology.has_exchange(exchange) and topology.exchange(exchange).declare
    bound = any(binding.exchange.name == exchange for binding in topology.bindings)
    behind = any(e.bind_to is not None and e.bind_to.name == exchange for e in topology.exchanges)
    return ours and not bound and not behind


def _loops(topology: Topology, sends: tuple[tuple[str, str], ...]) -> Iterator[Fault]:
    for loop in loops(topology, sends):
        yield Fault(
            FaultKind.LOOP,
            loop[0],
            f"letters expire around {' → '.join((*loop, loop[0]))} without being rejected on the way:"
            " RabbitMQ drops a letter that comes around; put a consumer into the loop that rejects,"
            " or lead it out",
        )


def _at_most_once(topology: Topology) -> Iterator[Fault]:
    for queue in topology.queues:
        if text(queue, "x-dead-letter-strategy") != "at-least-once":
            continue
        if not is_quorum(queue):
            yield _falls_back(queue, "is not a quorum queue", "declare it as one")
        elif text(queue, "x-overflow") != "reject-publish":
            yield _falls_back(
                queue, "does not reject publishes", "set x-overflow to reject-publish"
            )


def _falls_back(queue: RabbitQueue, why: str, cure: str) -> Fault:
    return Fault(
        FaultKind.AT_MOST_ONCE,
        queue.name,
        f"queue {queue.name!r} asks for at-least-once dead-lettering but {why}:"
        f" RabbitMQ silently does it at most once; {cure}",
    )


def _missing(exchange: str, why: str) -> Fault:
    return Fault(
        FaultKind.MISSING_EXCHANGE,
        exchange,
        f"exchange {exchange!r} is not there and {why}: they are gone; declare it,"
        " or name it with declare=False if somebody else does",
    )


def _leads_somewhere(topology: Topology, exchange: str, key: str) -> bool:
    """True also where we cannot know: another's exchange, or one that is missing altogether."""
    if not topology.has_exchange(exchange) or not topology.exchange(exchange).declare:
        return True
    return bool(reached(topology, exchange, (key,)))


def _hint(topology: Topology, exchange: str) -> str:
    keys = [binding.key for binding in topology.bindings if binding.exchange.name == exchange]
    if exchange == DEFAULT.name:
        return "; the default exchange takes the name of a queue"
    return f"; bound are {', '.join(map(repr, keys))}" if keys else "; nothing is bound to it"


def _shown(exchange: str) -> str:
    return f"exchange {exchange!r}" if exchange else "the default exchange"


def _noun(row: RabbitQueue | RabbitExchange) -> str:
    return "queue" if isinstance(row, RabbitQueue) else "exchange"


def _name(exchange: RabbitExchange | str) -> str:
    return exchange if isinstance(exchange, str) else exchange.name
