"""A failing event's whole life in memory, in virtual time: the same subscribers as on RabbitMQ."""

from __future__ import annotations

from datetime import timedelta

import pytest
from faststream.rabbit import QueueType

from service.core.outcome import NotYet, Refuse, RetryIn
from service.core.route import ReturnTo
from service.core.verdict import Bury, Retry
from service.flows.freeflow import topology as tables
from service.flows.freeflow.policy import Rules
from service.simulation.flavour import FLAVOURS, Flavour
from service.simulation.journal import Happening
from service.topology.tables import Binding, Topology, durable_queue
from tests.flows.freeflow.room import Room, open_room

HOUR = timedelta(hours=1)
SEARCH = durable_queue("search")
BESIDE = Topology(queues=(SEARCH,), bindings=(Binding(tables.EVENTS, SEARCH, "document.*"),))


def boom(_number: int) -> Exception:
    """Nothing works."""
    return ValueError("boom")


def waited(room: Room) -> list[str]:
    """The retry queues it has been in, in order."""
    arrived = (e.where for e in room.simulation.journal if e.what is Happening.ARRIVED)
    return [queue for queue in arrived if ".retry." in queue]


@pytest.mark.parametrize("kind", [QueueType.CLASSIC, QueueType.QUORUM])
@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
async def test_a_document_fails_four_times(flavour: Flavour, kind: QueueType) -> None:
    async with open_room(boom, Rules(kind=kind), flavour=flavour) as room:
        room.publish(tenant="acme")
        await room.rabbit.advance(HOUR)
        assert room.moments == [0, 30, 330, 2130]
        assert waited(room) == [f"freeflow.document.retry.{tier}" for tier in tables.TIERS]
        for number, event in enumerate(room.events):
            assert (event.routing_key, event.exchange) == ("document.created", "freeflow.events")
            assert event.retries == number
            assert event.headers.get("x-retry-count") == (number or None)
        (dead,) = room.dead
        assert dead.headers["x-dlo-reason"] == "failed 4 times: boom"
        assert dead.headers["x-dlo-error-type"] == "ValueError"
        assert dead.headers["x-original-routing-key"] == "document.created"
        assert dead.headers["tenant"] == "acme"
        assert room.simulation.lost() == ()


async def test_it_comes_back_as_document_retry_to_every_queue_bound_there() -> None:
    async with open_room(boom, more=BESIDE) as room:
        room.publish()
        await room.rabbit.advance(HOUR)
        keys = [letter.routing_key for letter in room.simulation.letters("search")]
        assert keys == ["document.created", *["document.retry"] * 3]  # 3 retries, 4 copies


async def test_return_to_queue_gives_nobody_else_a_copy() -> None:
    async with open_room(boom, Rules(return_to=ReturnTo.QUEUE), BESIDE) as room:
        room.publish()
        await room.rabbit.advance(HOUR)
        assert len(room.simulation.letters("search")) == 1
        assert [event.routing_key for event in room.events] == ["document.created"] * 4
        assert len(room.dead) == 1


@pytest.mark.parametrize(
    ("error", "moments"),
    [
        (RetryIn("5m"), [0, 300]),
        (RetryIn("300s"), [0, 300]),
        (RetryIn("7m"), [0, 30]),  # no such tier: the next one
        (NotYet("30m"), [0, 1800]),
        (NotYet("10m"), [0, 300]),
    ],
)
async def test_a_handler_may_choose_its_tier(error: Exception, moments: list[float]) -> None:
    async with open_room(lambda number: error if number == 1 else None) as room:
        room.publish()
        await room.rabbit.advance(HOUR)
        assert room.moments == moments
        assert room.events[1].retries == (0 if isinstance(error, NotYet) else 1)
        assert room.dead == ()


async def test_an_unknown_tier_is_said_on_the_letter() -> None:
    async with open_room(lambda number: RetryIn("7m", "too busy")) as room:
        room.publish()
        await room.rabbit.advance(timedelta(seconds=1))
        (waiting,) = room.simulation.letters("freeflow.document.retry.30s")
        said = "too busy; there is no tier 7m (30s, 5m, 30m), so the next one was taken"
        assert waiting.headers["x-dlo-error"] == said


async def test_not_yet_spends_no_attempt() -> None:
    async with open_room(lambda number: NotYet("5m") if number <= 9 else boom(number)) as room:
        room.publish()
        await room.rabbit.advance(2 * HOUR)
        assert len(room.events) == 9 + 4
        assert len(room.dead) == 1


async def test_refuse_goes_to_the_dead_letters_at_once() -> None:
    async with open_room(lambda number: Refuse("no such folder")) as room:
        room.publish()
        await room.rabbit.advance()
        assert room.dead[0].headers["x-dlo-reason"] == "refused: no such folder"
        assert [type(verdict) for verdict in room.witness.verdicts] == [Bury]


async def test_a_bare_reject_of_a_foreign_consumer_falls_into_the_net() -> None:
    async with open_room(boom) as room:
        room.simulation.publish("freeflow.events", "user.created", b"{}")
        delivery = room.simulation.get("freeflow.user")
        assert delivery is not None
        room.simulation.reject(delivery)
        assert [letter.routing_key for letter in room.dead] == ["user.created"]


async def test_an_event_too_large_is_buried_without_a_try() -> None:
    async with open_room(boom) as room:
        room.publish(body=b"x" * 1025)
        await room.rabbit.advance()
        assert room.events == []
        assert "over the limit" in str(room.dead[0].headers["x-dlo-reason"])


async def test_the_verdicts_are_told() -> None:
    async with open_room(boom) as room:
        room.publish()
        await room.rabbit.advance(HOUR)
        assert [type(verdict) for verdict in room.witness.verdicts] == [*[Retry] * 3, Bury]
