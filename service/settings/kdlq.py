"""The settings of KDLQ."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    SecretStr,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from service.settings.kinds import Duration, HandlerPath, Retries, between, spans
from service.settings.section import Section

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
SERVER = re.compile(r"[^\s,:/]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")
CLIENT_OURS = (
    *("bootstrap.servers", "group.id", "enable.auto.commit", "enable.auto.offset.store"),
    *("enable.idempotence", "acks", "message.timeout.ms"),
)
OURS = ("kdlq.skipped", "kdlq.wait.")


def _place(name: str) -> str:
    """A queue or a topic; `kdlq.…` are the room's own."""
    if not 1 <= len(name.encode()) <= 240 or name.startswith(OURS):
        raise ValueError("a queue or topic of yours, 240 bytes at most")
    return name


def _server(name: str) -> str:
    if not SERVER.fullmatch(name):
        raise ValueError('a server like "kafka.example:9092"')
    return name


Place = Annotated[StrictStr, AfterValidator(_place)]


class ConsumerSetting(Section):
    """An entry of `[[kdlq.consumers]]`."""

    broker: Literal["rabbit", "kafka"] = "rabbit"
    source: Place
    dlq: Place
    handler: Annotated[HandlerPath, Field(min_length=1)]
    redelivery: Place | None = None
    max_redeliveries: Retries = 3
    max_kills: Retries = -1
    on_exception: Literal["kill", "redeliver"] = "kill"
    informational_headers: StrictBool = False
    marker: StrictStr = ""
    foreign: Literal["take", "skip"] = "take"
    prefetch: Annotated[StrictInt, between(1, 65_535, str)] = 20
    redelivery_delay: Annotated[Duration, spans("0s", "24h")] = timedelta()
    group: StrictStr = ""
    wire: Literal["text", "java"] = "text"

    @property
    def taken(self) -> tuple[str, ...]:
        """The queues or topics that its handler gets messages of."""
        again = self.redelivery
        return (self.source,) if again in (None, self.source) else (self.source, str(again))

    @model_validator(mode="after")
    def _of_its_broker(self) -> Self:
        if wrong := "; ".join(self._wrong()):
            raise ValueError(wrong)
        return self

    def _wrong(self) -> Iterator[str]:
        """What goes round without end, and what one broker has and the other has not."""
        if self.dlq in self.taken and self.max_kills < 0:
            yield "a limit for max_kills, for its DLQ is one of those it takes messages of"
        if self.broker == "rabbit":
            if self.group or self.wire != "text":
                yield "group and wire with kafka only"
            return
        if not self.group:
            yield "a group, which shares the topic's messages"
        if self.redelivery_delay:
            yield "no redelivery_delay: Kafka has nothing to wait in"
        if odd := [name for name in (*self.taken, self.dlq) if not TOPIC.fullmatch(name)]:
            yield f"topics of letters, digits, ., _ and -, not {', '.join(odd)}"


def _told_apart(consumers: tuple[ConsumerSetting, ...]) -> tuple[ConsumerSetting, ...]:
    """Two handlers on one queue would each get half of its messages, whosever they are; two groups on
    one redelivery topic each get all of them."""
    sources = {(each.broker, each.group, each.source) for each in consumers}
    taken = [(each.broker, each.group, each.source) for each in consumers]
    for each in consumers:
        again = (each.broker, each.group, each.redelivery or each.source)
        taken += [again] if again not in sources else []
    twice = {name for (*_, name), n in Counter(taken).items() if n > 1} | _shared_topics(consumers)
    if twice:
        raise ValueError(
            f"each source and redelivery once; {', '.join(sorted(twice))} is there twice"
        )
    delays = {(each.redelivery or each.source, each.redelivery_delay) for each in consumers}
    waits = Counter(name for name, delay in delays if delay)
    if unequal := sorted(name for name, n in waits.items() if n > 1):
        raise ValueError(f"one redelivery_delay for {', '.join(unequal)}")
    return consumers


def _shared_topics(consumers: tuple[ConsumerSetting, ...]) -> set[str]:
    """Kafka's redelivery topics that somebody else takes too."""
    on_kafka = [each.taken for each in consumers if each.broker == "kafka"]
    takers = Counter(topic for taken in on_kafka for topic in taken)
    return {topic for _, *again in on_kafka for topic in again if takers[topic] > 1}


def _not_ours(name: str) -> str:
    """What is promised cannot be configured away."""
    if name in CLIENT_OURS:
        raise ValueError(f"a property of Kafka's client other than {', '.join(CLIENT_OURS)}")
    return name


Client = Annotated[
    Mapping[Annotated[StrictStr, AfterValidator(_not_ours)], SecretStr],
    AfterValidator(MappingProxyType),
    PlainSerializer(dict),
]


class Kafka(Section):
    """The Kafka cluster of the consumers that name it."""

    servers: tuple[Annotated[StrictStr, AfterValidator(_server)], ...] = ()
    client: Client = Field(default_factory=dict)
    patience: Annotated[Duration, spans("0s", "4m")] = timedelta(seconds=30)


class Kdlq(Section):
    """Redelivery and dead letter queues around handlers of yours, on RabbitMQ and on Kafka."""

    consumers: Annotated[tuple[ConsumerSetting, ...], AfterValidator(_told_apart)] = ()
    kafka: Kafka = Field(default_factory=Kafka)

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.kafka.servers and any(each.broker == "kafka" for each in self.consumers):
            raise ValueError("kdlq.kafka.servers, for a consumer is on kafka")
        return self
