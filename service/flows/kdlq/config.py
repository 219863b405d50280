"""What a Python team says of its KDLQ consumer: one frozen value, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from service.core.policy import FOR_EVER
from service.flows.kdlq.listening import HOOKS, unknown_hooks
from service.flows.kdlq.policy import Rules
from service.flows.kdlq.status import OnException
from service.flows.kdlq.topology import Names

RABBITMQ = ("amqp://", "amqps://")
Wire = Literal["text", "java"]


@dataclass(frozen=True, kw_only=True)
class KDLQConfig:
    """Where copies go and how often.

    config = KDLQConfig(servers="amqp://127.0.0.1/", dlq="orders.dlq", max_redeliveries=3, max_kills=1)
    """

    servers: str | tuple[str, ...]
    """`amqp://user:password@host/vhost` for RabbitMQ, `host:9092` (one or several) for Kafka."""
    dlq: str
    """The queue or topic for erroneous messages."""
    redelivery: str | None = None
    """The queue or topic for redelivery; None: the one that the message came from."""
    max_redeliveries: int = 3
    """Redeliveries before a message goes to the DLQ; negative: without end."""
    max_kills: int = FOR_EVER
    """How often a message may go to the DLQ before it is skipped; negative: without end."""
    informational_headers: bool = False
    """Whether copies carry `KDLQ_OrigOffset`, `KDLQ_OrigPartition` and `KDLQ_OrigTs`."""
    listeners: tuple[object, ...] = ()
    """Objects with any of the hooks of KDLQListener."""
    on_exception: Literal["kill", "redeliver"] = "kill"
    """What an exception other than MustBeRedelivered means."""
    marker: str = ""
    """The handler's id in `KDLQ_PrcMarker`; empty: its module and name."""
    foreign: Literal["take", "skip"] = "take"
    """What is done with redeliveries of another handler: "skip" acknowledges them unhandled, for a topic
    that several groups read."""
    skipped: str | None = None
    """A queue or topic for copies of skipped messages; None: log, metric and hook are all their trace."""
    redelivery_delay: timedelta = timedelta()
    """RabbitMQ: how long a message waits before it is redelivered. Without a wait, unlimited
    redelivery runs as fast as the broker can."""
    wire: Wire = "text"
    """Kafka: how counters are written; "java" as the Java library does. Both are always read."""
    key: str = ""
    """Signs the marks, so that nobody can forge a message's id and origin."""
    timeout: timedelta = timedelta(seconds=10)
    """How long a copy may wait for the broker's confirmation."""
    patience: timedelta = timedelta(seconds=30)
    """Kafka: how long a copy that the broker does not take is tried again before consuming stops."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka: further properties of librdkafka, such as `security.protocol`."""

    def __post_init__(self) -> None:
        if faults := "; ".join(self._faults()):
            raise ValueError(f"KDLQConfig: {faults}")

    @property
    def addresses(self) -> tuple[str, ...]:
        """The servers, one by one."""
        given = self.servers.split(",") if isinstance(self.servers, str) else self.servers
        return tuple(server.strip() for server in given if server.strip())

    @property
    def is_rabbitmq(self) -> bool:
        """Whether the servers are RabbitMQ's, and not Kafka's."""
        return self.addresses[0].startswith(RABBITMQ)

    def rules(self, source: str, marker: str) -> Rules:
        """The rules of a consumer of this queue or topic; ValueError where messages would go round."""
        names = Names(source, self.dlq, self.redelivery, self.redelivery_delay)
        if self.dlq in names.taken and self.max_kills < 0:
            raise ValueError(
                f"KDLQConfig: max_kills has no limit, and what fails in {self.dlq} goes there again:"
                " set one for the consumer of a DLQ"
            )
        return Rules(
            names,
            self.marker or marker,
            self.max_redeliveries,
            self.max_kills,
            self.informational_headers,
            OnException(self.on_exception),
            self.foreign == "take",
            self.skipped,
        )

    def _faults(self) -> Iterator[str]:
        if not self.addresses:
            yield "servers is empty: name the broker"
        elif self.is_rabbitmq and len(self.addresses) > 1:
            yield "servers names several RabbitMQ URLs: name one"
        elif not self.is_rabbitmq and self.redelivery_delay:
            yield "redelivery_delay is RabbitMQ's: Kafka has nothing to wait in"
        for name in ("dlq", "redelivery", "skipped"):
            if getattr(self, name) == "":
                yield f"{name} is empty"
        for name in ("timeout", "patience", "redelivery_delay"):
            if getattr(self, name) < timedelta():
                yield f"{name} is negative"
        for name, known in CHOICES.items():
            if (given := getattr(self, name)) not in known:
                yield f"{name} is {given!r}, expected {' or '.join(map(repr, known))}"
        for listener in self.listeners:
            if unknown := unknown_hooks(listener):
                yield f"a listener has {', '.join(unknown)}, the hooks are {', '.join(HOOKS)}"


class Redelivery:
    """The redelivery queue or topic of a config: one handler's, for a message does not say whose it is."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._taker: tuple[object, str] | None = None

    def take(self, handler: object, group: str) -> None:
        """Give it to this handler, in this group of Kafka's; ValueError where another has it."""
        if self._name is None:
            return
        if self._taker not in (None, (handler, group)):
            raise ValueError(
                f"{self._name} has a handler already, which would get the redeliveries of this one:"
                " give each a redelivery and a KDLQ of its own"
            )
        self._taker = handler, group


CHOICES = {
    "on_exception": ("kill", "redeliver"),
    "foreign": ("take", "skip"),
    "wire": ("text", "java"),
}
