"""The table on a real RabbitMQ: all scenarios at once, each on queues of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from faststream.rabbit import RabbitBroker

from service.kdlq import KDLQ
from tests.flows.kdlq.played import ON_RABBITMQ, Played, check
from tests.flows.kdlq.scenarios import SCENARIOS, SENT, Record, Scenario
from tests.kit.broker import channel_to, drain
from tests.servers.waiting import eventually

PLACES = {f"kdlq-test.{number}": scenario for number, scenario in enumerate(SCENARIOS)}
PARTS = ("", ".again", ".dlq", ".skipped")


@pytest.fixture(scope="module")
def played(rabbit_url: str) -> Mapping[str, Played]:
    """What is left of each, by name."""
    return asyncio.run(_play_all(rabbit_url))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_table_on_rabbitmq(scenario: Scenario, played: Mapping[str, Played]) -> None:
    check(scenario, played[scenario.name], lacks=ON_RABBITMQ)


async def _play_all(url: str) -> dict[str, Played]:
    broker = RabbitBroker(url, logger=None)
    records = {place: Record(scenario) for place, scenario in PLACES.items()}
    async with channel_to(url) as channel:
        for place in PLACES:
            for part in PARTS:
                await channel.queue_delete(place + part)
        opened = [_subscribe(broker, url, place, record) for place, record in records.items()]
        for kdlq in opened:
            await kdlq.__aenter__()
        await broker.start()
        for place, scenario in PLACES.items():
            await _publish(channel, place, scenario)
        await eventually(lambda: all(map(_is_over, records.values())), 10)
        await broker.stop()
        for kdlq in opened:
            await kdlq.__aexit__()
        return {
            scenario.name: await _left(channel, place, records[place])
            for place, scenario in PLACES.items()
        }


def _subscribe(broker: RabbitBroker, url: str, place: str, record: Record) -> KDLQ:
    kdlq = KDLQ(record.scenario.rules(url, place, record))
    kdlq.subscriber(broker, place)(record.handler)
    if record.scenario.reprocessed:
        kdlq.subscriber(broker, f"{place}.dlq")(record.handler)
    return kdlq


async def _publish(channel: AbstractChannel, place: str, scenario: Scenario) -> None:
    headers = dict(scenario.headers)
    message = aio_pika.Message(
        scenario.body,
        headers=headers,  # type: ignore[arg-type]
        message_id=place,
        timestamp=SENT,
    )
    await channel.default_exchange.publish(message, place)


def _is_over(record: Record) -> bool:
    return len(record.told) >= len(record.scenario.told)


async def _left(channel: AbstractChannel, place: str, record: Record) -> Played:
    """With all consumers gone, whatever was not settled is ready again."""
    left, again, dead, skipped = [
        await drain(channel, place + part) if _stands(place + part) else [] for part in PARTS
    ]
    return Played(
        tuple(record.told),
        tuple(letter.headers for letter in dead),
        tuple(letter.headers for letter in skipped),
        len(left) + len(again),
    )


def _stands(queue: str) -> bool:
    """Only who names a redelivery queue has one."""
    place, again, _ = queue.partition(".again")
    return not again or "redelivery" in PLACES[place].config
