"""The table on the paper broker."""

from __future__ import annotations

from datetime import timedelta

import pytest
from faststream.rabbit import QueueType, RabbitBroker

from service.flows.kdlq.topology import user_queue
from service.kdlq import KDLQ
from service.simulation.broker import SimulatedBroker
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from service.topology.tables import Topology
from tests.flows.kdlq.played import ON_RABBITMQ, Played, check
from tests.flows.kdlq.scenarios import SCENARIOS, SENT, Record, Scenario

SERVERS, KIND = "amqp://paper/", QueueType.CLASSIC


async def play(scenario: Scenario, place: str = "orders") -> Played:
    """On a broker of its own, in no time."""
    record = Record(scenario)
    config = scenario.rules(SERVERS, place, record)
    queues = (place, f"{place}.again", f"{place}.dlq", f"{place}.skipped")
    kinds = {name: user_queue(name, KIND) for name in queues}
    simulation = SimulatedBroker(Topology(queues=tuple(kinds.values())))
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


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_the_table_on_paper(scenario: Scenario) -> None:
    played = await play(scenario)
    check(scenario, played, lacks=ON_RABBITMQ)
    assert played.told == scenario.told  # here nothing happens at once
