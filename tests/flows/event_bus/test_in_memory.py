"""A letter's whole life on the bus, in memory and in virtual time: the same subscribers as on RabbitMQ."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest
import structlog

from service.core.outcome import Done, Failed, Refused, TooEarly
from service.core.verdict import Accept, Bury, Requeue, Retry
from service.flows.event_bus import consumers
from service.flows.event_bus.event import Event, Reply
from service.flows.event_bus.policy import Rules
from service.simulation.flavour import FLAVOURS, RABBIT_3_10, RABBIT_4_3, Flavour
from tests.flows.event_bus.on_paper import OTHER, WAIT, WORK, open_bus

S = timedelta(seconds=1)
DONE, EARLY = Reply(Done()), Reply(TooEarly(S / 100))
UNAVAILABLE = Reply(Failed("HTTP 503 Service Unavailable", "503", status=503))
KINDS = pytest.mark.parametrize("quorum", [False, True], ids=["classic", "quorum"])
BROKERS = pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)


def always(reply: Reply) -> Callable[[Event], Reply]:
    """A service that knows one answer."""
    return lambda _event: reply


def answers(*replies: Reply) -> Callable[[Event], Reply]:
    """A service that gives these answers one after the other, and takes everything afterwards."""
    left = iter(replies)
    return lambda _event: next(left, DONE)


@KINDS
@BROKERS
async def test_ten_retries_then_the_dead_letter_once(flavour: Flavour, quorum: bool) -> None:
    with structlog.testing.capture_logs() as lines:
        async with open_bus(
            always(UNAVAILABLE), other=always(DONE), flavour=flavour, quorum=quorum
        ) as bus:
            bus.publish(message_id="m1", content_type="application/json")
            await bus.rabbit.advance(3600)
            assert bus.moments() == [5.0 * round_ for round_ in range(11)]
            assert [event.retries for event in bus.events()] == [*range(11)]
            assert {(e.routing_key, e.exchange, e.message_id) for e in bus.events()} == {
                ("stock.moved", "wms.main-exchange", "m1")
            }
            assert [event.headers for event in bus.events()] == [{"tenant": "north"}] * 11
            assert bus.moments(OTHER) == [0]  # the other service sees nothing of it
            (dead,) = bus.dead()
            assert dead.headers["x-original-queue"] == WORK
            assert dead.headers["x-original-routing-key"] == "stock.moved"
            assert dead.headers["x-final-status-code"] == 503
            assert dead.headers["x-final-error"] == "HTTP 503 Service Unavailable"
            assert dead.headers["x-final-retry-count"] == dead.headers["x-retry-count"] == 10
            assert dead.headers["x-dlo-first-failure"] == "2026-01-01T00:00:00Z"
            assert dead.headers["tenant"] == "north"
            assert "x-death" not in dead.headers
            assert bus.simulation.lost() == ()
    (said,) = [line for line in lines if line["event"] == consumers.MAX_RETRIES_EXCEEDED]
    assert (said["queue"], said["retries"], said["status"]) == (WORK, 10, 503)


@pytest.mark.parametrize("failures", [0, 1, 3, 10])
async def test_one_that_works_on_try_n_is_taken_on_try_n(failures: int) -> None:
    async with open_bus(answers(*[UNAVAILABLE] * failures), other=always(DONE)) as bus:
        bus.publish()
        await bus.rabbit.advance(3600)
        assert len(bus.events()) == failures + 1
        assert (bus.dead(), bus.simulation.lost()) == ((), ())


@pytest.mark.parametrize(("limit", "tries"), [(0, 1), (2, 3)])
async def test_the_limit_is_a_setting(limit: int, tries: int) -> None:
    async with open_bus(always(UNAVAILABLE), other=always(DONE), rules=Rules(limit, 5 * S)) as bus:
        bus.publish()
        await bus.rabbit.advance(3600)
        assert len(bus.events()) == tries
        assert len(bus.dead()) == 1


async def test_a_refused_letter_is_buried_at_once() -> None:
    refused = Reply(Refused("HTTP 404 Not Found", kind="404 Not Found", status=404))
    with structlog.testing.capture_logs() as lines:
        async with open_bus(always(refused), other=always(DONE)) as bus:
            bus.publish()
            await bus.rabbit.advance(3600)
            (dead,) = bus.dead()
            assert (dead.headers["x-final-status-code"], len(bus.events())) == (404, 1)
            assert dead.headers["x-final-retry-count"] == 0
    assert consumers.MAX_RETRIES_EXCEEDED not in [line["event"] for line in lines]


@KINDS
@BROKERS
async def test_a_letter_that_came_too_early_sleeps_and_spends_no_attempt(
    flavour: Flavour, quorum: bool
) -> None:
    script = answers(UNAVAILABLE, EARLY, EARLY, UNAVAILABLE)
    async with open_bus(script, other=always(DONE), flavour=flavour, quorum=quorum) as bus:
        bus.publish()
        await bus.rabbit.advance(60)
        assert [event.retries for event in bus.events()] == [0, 1, 1, 1, 2]
        assert bus.moments() == [0, 5, 5, 5, 10]  # asleep here, not in the retry queue
        assert bus.simulation.lost() == ()
        kinds = [type(verdict) for verdict in bus.witness.verdicts if verdict != Accept()]
        assert kinds == [Retry, Requeue, Requeue, Retry]


@KINDS
@BROKERS
async def test_without_a_seat_it_waits_in_the_retry_queue_and_its_count_goes_on(
    flavour: Flavour, quorum: bool
) -> None:
    """Prefetch 1: half of it is no seat at all."""
    script = answers(UNAVAILABLE, UNAVAILABLE, EARLY, EARLY, *[UNAVAILABLE] * 99)
    options = {"flavour": flavour, "quorum": quorum}
    async with open_bus(script, other=always(DONE), prefetch=1, **options) as bus:  # type: ignore[arg-type]
        bus.publish(message_id="m1")
        await bus.rabbit.advance(3600)
        assert [event.retries for event in bus.events()] == [0, 1, 2, 2, *range(2, 11)]
        assert {event.routing_key for event in bus.events()} == {"stock.moved"}
        assert bus.moments() == [5.0 * round_ for round_ in range(13)]
        (dead,) = bus.dead()
        assert dead.headers["x-final-retry-count"] == 10
        assert bus.simulation.lost() == ()


async def test_half_of_the_prefetch_may_sleep() -> None:
    early = always(Reply(TooEarly(S / 5)))
    async with open_bus(early, other=always(DONE), prefetch=5) as bus:
        for number in range(5):
            bus.publish(str(number).encode())
        for _ in range(100):  # until all were answered; none is awake again by then
            await asyncio.sleep(0)
        assert len(bus.simulation.letters(WAIT)) == 3
        assert len(bus.simulation.unsettled(WORK)) == 2


@pytest.mark.parametrize("flavour", [RABBIT_3_10, RABBIT_4_3], ids=lambda flavour: flavour.name)
async def test_a_letter_that_slept_too_often_is_sent_anew_before_the_queue_gives_it_up(
    flavour: Flavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "WORN", 3)
    monkeypatch.setattr(consumers, "SHORTEST_WAIT", S / 1000)
    options = {"flavour": flavour, "quorum": True}
    async with open_bus(answers(*[EARLY] * 6), other=always(DONE), **options) as bus:  # type: ignore[arg-type]
        bus.publish()
        await bus.rabbit.advance(60)
        assert bus.moments() == [0, 0, 0, 0, 5, 5, 5]
        assert {event.retries for event in bus.events()} == {0}
        assert bus.simulation.lost() == ()


async def test_retry_after_holds_back_what_is_behind_it() -> None:
    paused = Reply(UNAVAILABLE.outcome, pause=S / 10)
    async with open_bus(answers(paused), other=always(DONE), prefetch=1) as bus:
        for number in range(4):
            bus.publish(str(number).encode())
        await bus.rabbit.advance(60)
        retries = {event.body: event.retries for event in bus.events()}
        assert retries == {b"0": 1, b"1": 0, b"2": 0, b"3": 0}


async def test_a_dead_letter_moved_back_goes_on_counting_and_gets_one_attempt() -> None:
    async with open_bus(always(UNAVAILABLE), other=always(DONE)) as bus:
        bus.publish(message_id="m1")
        await bus.rabbit.advance(60)
        (dead,) = bus.dead()
        bus.simulation.publish("", WORK, dead.body, dead.headers, dead.properties)
        await bus.rabbit.advance(60)
        assert [event.retries for event in bus.events()] == [*range(11), 10]
        assert [letter.headers["x-final-retry-count"] for letter in bus.dead()] == [10, 10]


async def test_a_letter_too_large_goes_to_the_dead_letters_untried() -> None:
    async with open_bus(always(DONE)) as bus:
        bus.publish(b"x" * 1025)
        await bus.rabbit.advance(60)
        assert bus.events() == []
        assert bus.dead()[0].headers["x-final-error"].startswith("a body of 1025 bytes")  # type: ignore[attr-defined]


async def test_a_door_that_breaks_keeps_the_letter() -> None:
    def broken(_event: Event) -> Reply:
        raise RuntimeError("no door of ours raises")

    async with open_bus(broken, other=always(DONE)) as bus:
        bus.publish()
        await bus.rabbit.advance(60)
        (dead,) = bus.dead()
        assert "our own fault" in str(dead.headers["x-dlo-reason"])
        assert isinstance(bus.witness.verdicts[-1], Bury | Accept)


async def test_a_hundred_rounds_leave_the_headers_as_large_as_two() -> None:
    numbers, sizes = count(), list[int]()
    async with open_bus(
        lambda _event: EARLY if next(numbers) % 2 else UNAVAILABLE,
        other=always(DONE),
        rules=Rules(-1, 5 * S),
        prefetch=1,
    ) as bus:
        bus.publish(message_id="m1")
        for _ in range(100):
            await bus.rabbit.advance(5)
            letters = (*bus.simulation.letters(WAIT), *bus.simulation.letters(WORK))
            sizes += [len(json.dumps(letter.headers, default=str)) for letter in letters]
        assert len(bus.events()) >= 100
        assert max(sizes) - max(sizes[:4]) < 20  # digits of the counts
