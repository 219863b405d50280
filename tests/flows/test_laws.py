"""The laws that hold for every flow, on paper and in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from service.core.marks import OURS, strip
from service.simulation.journal import Happening
from service.topology.faults import faults
from tests.flows.stages import FLOWS, Accepts, Case, Stage

pytestmark = pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
OWN = {"tenant": "acme", "count": 7}


def never(_number: int) -> bool:
    """Nothing works."""
    return False


def from_try(number: int) -> Accepts:
    """Works from this delivery on."""
    return lambda at: at >= number


def publish(stage: Stage, flow: Case, headers: Mapping[str, object] = OWN) -> None:
    """A letter of a user's."""
    exchange, key = flow.entry
    properties = {"message_id": "m-1", "delivery_mode": 2}
    assert stage.simulation.publish(exchange, key, b"{}", headers, properties)


async def test_the_topology_has_no_faults_and_every_send_lands_in_a_declared_queue(
    flow: Case,
) -> None:
    async with flow.open(never) as stage:
        publish(stage, flow)
        await stage.rabbit.advance(flow.whole)
        sends = {
            (event.where, event.letter.routing_key)
            for event in stage.simulation.journal
            if event.what is Happening.PUBLISHED
        }
        assert faults(stage.simulation.topology, sends) == ()
        kinds = {event.what for event in stage.simulation.journal}
        assert not kinds & {Happening.LOST, Happening.RETURNED}


async def test_a_letter_that_always_fails_is_buried_exactly_once(flow: Case) -> None:
    async with flow.open(never) as stage:
        publish(stage, flow)
        await stage.rabbit.advance(flow.whole)
        assert len(stage.seen) == flow.deliveries
        (dead,) = stage.simulation.letters(flow.dead)
        assert dead.body == b"{}"
        assert {name: dead.headers[name] for name in OWN} == OWN
        assert everything_is_settled(stage, flow)


async def test_one_that_succeeds_on_a_try_is_accepted_on_that_try(flow: Case) -> None:
    for number in range(1, flow.deliveries + 1):
        async with flow.open(from_try(number)) as stage:
            publish(stage, flow)
            await stage.rabbit.advance(flow.whole)
            assert len(stage.seen) == number
            assert stage.simulation.letters(flow.dead) == ()
            assert everything_is_settled(stage, flow)


async def test_a_letter_sent_back_with_fresh_attempts_carries_none_of_our_marks(
    flow: Case,
) -> None:
    async with flow.open(never) as stage:
        publish(stage, flow)
        await stage.rabbit.advance(flow.whole)
        (dead,) = stage.simulation.letters(flow.dead)
        again = strip(dead.headers)
        assert again == OWN
        publish(stage, flow, again)
        await stage.rabbit.advance(flow.whole)
        assert not OURS & stage.seen[flow.deliveries].keys()
        assert len(stage.seen) == 2 * flow.deliveries
        assert len(stage.simulation.letters(flow.dead)) == 2


async def test_headers_do_not_grow(flow: Case) -> None:
    async with flow.open(never) as stage:
        publish(stage, flow)
        await stage.rabbit.advance(flow.whole)
        retried = [len(repr(sorted(headers.items()))) for headers in stage.seen[1:]]
        assert (
            max(retried) - min(retried) < 24
        )  # digits of counts, names of queues; no further mark


def everything_is_settled(stage: Stage, flow: Case) -> bool:
    """Whether no letter is anywhere but among the dead ones and where nobody consumes."""
    queues = {queue.name for queue in stage.simulation.topology.queues} - {flow.dead, *flow.idle}
    return not any(
        (*stage.simulation.letters(name), *stage.simulation.unsettled(name)) for name in queues
    )
