"""The table on Kafka's protocol: all scenarios at once, each on topics of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

import pytest
from confluent_kafka import Message as KafkaRecord
from faststream.confluent import KafkaBroker

from service.kdlq import KDLQ
from tests.flows.kdlq.played import Played, check
from tests.flows.kdlq.scenarios import SCENARIOS, SENT_MS, Record, Scenario
from tests.kit.kafka import Kafka, Outside, list_of, some_kafka
from tests.servers.waiting import eventually

RUN = os.urandom(3).hex()  # a broker that outlives us knows the topics of earlier runs
PLACES = {f"kdlq-{RUN}.{number}": scenario for number, scenario in enumerate(SCENARIOS)}
PARTS = ("", ".again", ".dlq", ".skipped")


@pytest.fixture(scope="module")
def played() -> Mapping[str, Played]:
    """What is left of each, by name."""
    with some_kafka() as kafka:
        return asyncio.run(_play_all(kafka))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_table_on_kafka(scenario: Scenario, played: Mapping[str, Played]) -> None:
    check(scenario, played[scenario.name])


async def _play_all(kafka: Kafka) -> dict[str, Played]:
    kafka.create(*(place + part for place in PLACES for part in PARTS))
    outside, broker = Outside(kafka.address), KafkaBroker(kafka.address, logger=None)
    records = {place: Record(scenario) for place, scenario in PLACES.items()}
    opened = [_subscribe(broker, kafka.address, place, record) for place, record in records.items()]
    for place, scenario in PLACES.items():
        headers = [(name, str(value).encode()) for name, value in scenario.headers.items()]
        outside.send(place, scenario.body, headers, b"key", SENT_MS)
    await asyncio.gather(*(kdlq.__aenter__() for kdlq in opened))
    await broker.start()
    await eventually(lambda: all(map(_is_over, records.values())), 30)
    await broker.stop()
    await asyncio.gather(*(kdlq.__aexit__() for kdlq in opened))
    return {
        scenario.name: await asyncio.to_thread(_left, outside, place, records[place])
        for place, scenario in PLACES.items()
    }


def _subscribe(broker: KafkaBroker, address: str, place: str, record: Record) -> KDLQ:
    kdlq = KDLQ(record.scenario.rules(address, place, record))
    kdlq.subscriber(broker, place, group=place, fetch_max_wait_ms=20)(record.handler)
    if record.scenario.reprocessed:
        again = kdlq.subscriber(broker, f"{place}.dlq", group=f"{place}.dlq", fetch_max_wait_ms=20)
        again(record.handler)
    return kdlq


def _is_over(record: Record) -> bool:
    return len(record.told) >= len(record.scenario.told)


def _left(outside: Outside, place: str, record: Record) -> Played:
    scenario = record.scenario
    left = outside.left(place, place)
    if "redelivery" in scenario.config:
        left += outside.left(f"{place}.again", place)
    dead = outside.read(f"{place}.dlq")
    if scenario.reprocessed:  # a topic keeps what was processed: what counts is how far
        dead, left = [], left + outside.left(f"{place}.dlq", f"{place}.dlq")
    return Played(
        tuple(record.told),
        tuple(map(_headers, dead)),
        tuple(map(_headers, outside.read(f"{place}.skipped"))),
        left,
    )


def _headers(record: KafkaRecord) -> dict[str, object]:
    """As the table has them; nothing is there twice."""
    pairs = list_of(record)
    assert len(dict(pairs)) == len(pairs)
    assert record.key() == b"key"
    return {name: value.decode() for name, value in pairs if value is not None}
