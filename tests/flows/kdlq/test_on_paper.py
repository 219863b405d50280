"""The table on the paper broker."""

from __future__ import annotations

from datetime import timedelta

import pytest
import structlog
from faststream.rabbit import QueueType, RabbitBroker, RabbitQueue

from service.core import marks as names
from service.flows.kdlq.status import Result
from service.flows.kdlq.topology import user_queue
from service.kdlq import KDLQ
from service.simulation.broker import SimulatedBroker
from service.simulation.channel import incoming
from service.simulation.letter import Delivery
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from service.topology.tables import Topology
from tests.flows.kdlq.played import ON_RABBITMQ, Played, check
from tests.flows.kdlq.scenarios import (
    AGAIN,
    ERROR,
    OK,
    PROCESSED,
    SCENARIOS,
    SENT,
    Record,
    Scenario,
)

SERVERS, KIND = "amqp://paper/", QueueType.CLASSIC


QUEUES = ("orders", "orders.again", "orders.dlq", "orders.skipped")


def _queue(name: str) -> RabbitQueue:
    return user_queue(name, KIND)


async def play(scenario: Scenario, place: str = "orders") -> Played:
    """On a broker of its own, in no time."""
    record = Record(scenario)
    config = scenario.rules(SERVERS, place, record)
    queues = tuple(f"{place}{part}" for part in ("", ".again", ".dlq", ".skipped"))
    simulation = SimulatedBroker(Topology(queues=tuple(map(_queue, queues))))
    kdlq = KDLQ(config, post=SimulatedPost(simulation), clock=lambda: simulation.now)
    broker = RabbitBroker(logger=None)
    kdlq.subscriber(broker, place)(record.handler)
    if scenario.reprocessed:
        kdlq.subscriber(broker, f"{place}.dlq")(record.handler)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        properties = {"message_id": "m-1", "timestamp": SENT}
        simulation.publish("", place, scenario.body, scenario.headers, properties)
        await rabbit.advance(timedelta(minutes=1))
        left = [*simulation.letters(place), *simulation.letters(f"{place}.again")]
        left += [letter for name in queues for letter in simulation.unsettled(name)]
        return Played(
            tuple(record.told),
            tuple(letter.headers for letter in simulation.letters(f"{place}.dlq")),
            tuple(letter.headers for letter in simulation.letters(f"{place}.skipped")),
            len(left),
        )


async def test_another_handlers_redelivery_is_left_to_it() -> None:
    others = {names.MARKER: "another", names.REDELIVERED: 1}
    skipping = {"foreign": "skip"}
    with structlog.testing.capture_logs() as lines:
        played = await play(Scenario("", (ERROR,), (), config=skipping, headers=others))
    (line,) = [line for line in lines if line.get("action") == "foreign"]
    facts = (line["log_level"], line["source"], line["letter"], line["marker"])
    assert facts == ("info", "orders", "m-1", "another")  # it is acknowledged: this is its trace
    assert (played.told, played.dead, played.left) == ((), (), 0)
    killed = {**others, names.KILLS: 1}  # somebody has to process what another handler killed
    played = await play(Scenario("", (OK,), (), config=skipping, headers=killed))
    assert played.told == (PROCESSED,)


async def test_the_reported_result_is_what_happened() -> None:
    results = []
    for ends, kills in ((OK, 0), (AGAIN, 0), (ERROR, 0), (ERROR, 1)):
        record = Record(Scenario("", (ends,), (), config={"max_kills": 1}))
        simulation = SimulatedBroker(Topology(queues=tuple(map(_queue, QUEUES))))
        kdlq = KDLQ(record.scenario.rules(SERVERS, "orders"), post=SimulatedPost(simulation))
        consumer = kdlq.consumer(record.handler, "orders")
        simulation.publish("", "orders", b"{}", {names.KILLS: kills} if kills else {}, {})
        taken: list[Delivery] = []
        simulation.consume("orders", taken.append, prefetch=1)
        results.append(await consumer.accept(incoming(simulation, taken[0], no_ack=False)))
        assert len(simulation.unsettled("orders")) == 1  # that is the caller's to do
    assert results == [Result.OK, Result.REDELIVERED, Result.KILLED, Result.SKIPPED]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_the_table_on_paper(scenario: Scenario) -> None:
    played = await play(scenario)
    check(scenario, played, lacks=ON_RABBITMQ)
    assert played.told == scenario.told  # here nothing happens at once
