"""Topics seen from outside: send records, read all of a topic, and how far a group has committed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it is there, but not in __all__
    AdminClient,
    NewTopic,
)

from tests.servers.kafka import MockKafka

ADDRESS = "DLO_TEST_KAFKA"
WITHIN = 10.0
Header = tuple[str, str | bytes | None]


class Kafka(Protocol):
    """A broker to test against."""

    address: str

    def create(self, *topics: str, partitions: int = 1) -> None:
        """Make topics."""


class RealKafka:
    """The one that the environment names."""

    def __init__(self, address: str) -> None:
        self.address = address

    def create(self, *topics: str, partitions: int = 1) -> None:
        """Make topics."""
        admin = AdminClient({"bootstrap.servers": self.address})
        made = admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics])
        for each in made.values():
            each.result()


@contextmanager
def some_kafka() -> Iterator[Kafka]:
    """The Kafka under test: the one the environment names, else the mock."""
    if address := os.environ.get(ADDRESS):
        yield RealKafka(address)
        return
    mock = MockKafka()
    try:
        yield mock
    finally:
        mock.close()


@dataclass(frozen=True)
class Outside:
    """A stranger with a client of his own."""

    address: str

    def send(
        self,
        topic: str,
        value: bytes | None,
        headers: Sequence[Header] = (),
        key: bytes | None = None,
        timestamp: int = 0,
        partition: int = -1,
    ) -> None:
        """A record, delivered."""
        self._producer.produce(
            topic, value, key, partition, headers=list(headers), timestamp=timestamp
        )
        assert self._producer.flush(WITHIN) == 0

    @cached_property
    def _producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.address})

    def read(self, topic: str, partitions: int = 1) -> list[Message]:
        """All of a topic."""
        consumer = self._consumer("reader")
        ends = {}
        for number in range(partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), WITHIN)
            if high > low:
                ends[number] = high
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        records: list[Message] = []
        while len(records) < sum(ends.values()):
            if (record := consumer.poll(WITHIN)) is None:
                raise AssertionError(f"{topic}: {len(records)} of {sum(ends.values())} records")
            assert record.error() is None
            records.append(record)
        consumer.close()
        return records

    def left(self, topic: str, group: str, partitions: int = 1) -> int:
        """How many records of a topic a group has not committed."""
        consumer = self._consumer(group)
        places = [TopicPartition(topic, number) for number in range(partitions)]
        left = 0
        for place in consumer.committed(places, WITHIN):
            _, high = consumer.get_watermark_offsets(place, WITHIN)
            left += high - max(place.offset, 0)
        consumer.close()
        return left

    def _consumer(self, group: str) -> Consumer:
        settings: dict[str, str | int | float | bool | None] = {
            "bootstrap.servers": self.address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
        }
        return Consumer(settings)


def list_of(record: Message) -> list[tuple[str, bytes | None]]:
    """The headers of a record, one by one."""
    given = record.headers() or []
    pairs = given.items() if isinstance(given, dict) else given
    return [(name, v.encode() if isinstance(v, str) else v) for name, v in pairs]
