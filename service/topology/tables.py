"""What stands on the broker, as data: FastStream's own exchanges and queues, and their bindings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from faststream.rabbit import QueueType, RabbitExchange, RabbitQueue

Arguments = dict[str, str | int]
Row = TypeVar("Row")

# The exchange without a name: it stands on every broker and takes a queue's name as its key.
DEFAULT = RabbitExchange("")


@dataclass(frozen=True, slots=True)
class Binding:
    """Letters of this exchange whose key matches go to this queue."""

    exchange: RabbitExchange
    queue: RabbitQueue
    key: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """Three tables. A row with `declare=False` stands there already and is somebody else's."""

    exchanges: tuple[RabbitExchange, ...] = ()
    queues: tuple[RabbitQueue, ...] = ()
    bindings: tuple[Binding, ...] = ()

    def __add__(self, other: Topology) -> Topology:
        """Both topologies side by side; what stands in both stands once."""
        return Topology(
            _once(self.exchanges + other.exchanges),
            _once(self.queues + other.queues),
            _once(self.bindings + other.bindings),
        )

    def queue(self, name: str) -> RabbitQueue:
        """The queue of this name; asking for one that is not here is a LookupError."""
        for queue in self.queues:
            if queue.name == name:
                return queue
        raise LookupError(f"no queue {name!r} in this topology")

    def exchange(self, name: str) -> RabbitExchange:
        """The exchange of this name (`""` is the default one); a LookupError if it is not here."""
        for exchange in (DEFAULT, *self.exchanges):
            if exchange.name == name:
                return exchange
        raise LookupError(f"no exchange {name!r} in this topology")

    def has_queue(self, name: str) -> bool:
        """Whether a queue of this name stands in the table."""
        return any(queue.name == name for queue in self.queues)

    def has_exchange(self, name: str) -> bool:
        """Whether an exchange of this name stands in the table; the default one always does."""
        return name == DEFAULT.name or any(exchange.name == name for exchange in self.exchanges)


def durable_queue(
    name: str, arguments: Arguments | None = None, kind: QueueType = QueueType.CLASSIC
) -> RabbitQueue:
    """A durable queue of either kind; `queues.type` in the settings chooses which."""
    # FastStream's overloads want the kind as a literal; here it is a setting.
    return RabbitQueue(name, queue_type=kind, arguments=arguments)  # type: ignore[call-overload, no-any-return]


def dead_letters_to(
    exchange: RabbitExchange, key: str | None = None, kind: QueueType = QueueType.CLASSIC
) -> Arguments:
    """The arguments of a queue whose dead letters go here, under this key or under their own."""
    arguments: Arguments = {"x-dead-letter-exchange": exchange.name}
    if key is not None:
        arguments["x-dead-letter-routing-key"] = key
    return arguments | (AT_LEAST_ONCE if kind is QueueType.QUORUM else {})


def expires_to(
    exchange: RabbitExchange,
    key: str | None,
    after: timedelta,
    kind: QueueType = QueueType.CLASSIC,
) -> Arguments:
    """The arguments of a queue where letters wait this long and then go on."""
    wait: Arguments = {"x-message-ttl": after // timedelta(milliseconds=1)}
    return dead_letters_to(exchange, key, kind) | wait


# Quorum queues dead-letter with confirms only if both are set: without reject-publish RabbitMQ
# silently falls back to at-most-once, and a letter is gone when its target is away.
AT_LEAST_ONCE: Arguments = {
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


def _once(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(dict.fromkeys(rows))
