"""The event bus on a real broker, pushing to a real HTTP endpoint with a script."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from aio_pika import Message
from faststream.rabbit import QueueType

from service.flows.event_bus import topology as tables
from service.flows.event_bus.consumers import MAX_RETRIES_EXCEEDED
from tests.flows.event_bus.conftest import CINCOUT, SINGLE, STOCK, STRICT, TIMEOUT, WAIT, Bus
from tests.kit.broker import channel_to
from tests.kit.endpoint import Answer, Endpoint, Request, Script, listening
from tests.kit.process import Service
from tests.servers.waiting import eventually

WORK = tables.work_name(CINCOUT)
UNAVAILABLE = Answer(503)


def first(*answers: Answer) -> Script:
    """These answers one after the other, then everything is taken."""
    left = iter(answers)
    return lambda _request: next(left, Answer())


def at(path: str, script: Script) -> Script:
    """A script for one service; the others take everything."""
    return lambda request: script(request) if request.path == f"/{path}" else Answer()


@pytest.mark.parametrize(
    ("answer", "tries"),
    [
        pytest.param(Answer(200), [0], id="2xx"),
        pytest.param(Answer(204), [0], id="204"),
        pytest.param(Answer(409), [0, 1], id="409"),
        pytest.param(Answer(429), [0, 1], id="429"),
        pytest.param(Answer(425, b'{"processAfterDelayMs": 100}'), [0, 0], id="425"),
        pytest.param(Answer(500), [0, 1], id="5xx"),
        pytest.param(Answer(503, b"x" * 200_000), [0, 1], id="a long answer"),
        pytest.param(Answer(404), [0, 1], id="other 4xx"),
        pytest.param(Answer(302, headers={"location": "/elsewhere"}), [0, 1], id="a redirect"),
        pytest.param(Answer(hangs_up=True), [0, 1], id="exception"),
        pytest.param(Answer(after=TIMEOUT + 0.2), [0, 1], id="time-out"),
    ],
)
async def test_every_row_of_the_status_table(bus: Bus, answer: Answer, tries: list[int]) -> None:
    bus.endpoint.script = first(answer)
    await bus.send(b"event", message_id="m1")
    await eventually(lambda: len(bus.endpoint.seen) == len(tries), within=5)
    await eventually(bus.is_empty)
    assert [request.retries for request in bus.endpoint.seen] == tries
    assert {request.path for request in bus.endpoint.seen} == {f"/{CINCOUT}"}


async def test_what_a_service_is_handed(bus: Bus) -> None:
    bus.endpoint.script = at(CINCOUT, first(UNAVAILABLE))
    body = bytes(range(256))
    await bus.publish(
        body,
        message_id="m1",
        content_type="application/x-thing; a=\u00e9\r\nx-evil: 1",
        correlation_id="c1",
        type="moved",
        headers={"traceparent": "00-ab-cd-01", "secret": "of the producer"},
    )
    await eventually(lambda: len(bus.endpoint.of(body)) == 4)
    pushed = [request for request in bus.endpoint.seen if request.path == f"/{CINCOUT}"]
    for number, request in enumerate(pushed):
        assert (
            request.headers.items()
            >= {
                "content-type": "application/x-thing; a=%C3%A9%0D%0Ax-evil: 1",
                "x-message-id": "m1",
                "x-correlation-id": "c1",
                "x-event-type": "moved",
                "x-original-exchange": "wms.main-exchange",
                "x-original-routing-key": "stock.moved",
                "x-retry-count": str(number),
                "traceparent": "00-ab-cd-01",
            }.items()
        )
        assert "secret" not in request.headers
    assert len(pushed) == 2


async def test_ten_retries_then_the_dead_letter_with_the_four_headers(bus: Bus) -> None:
    bus.endpoint.script = lambda _request: Answer(503, b"under repair")
    await bus.send(b"event", message_id="m1", headers={"tenant": "north"})
    dead = await bus.dead()
    assert [request.retries for request in bus.endpoint.seen] == [*range(11)]
    assert all(b.at - a.at >= WAIT for a, b in pairwise(bus.endpoint.seen))
    assert (dead.body, dead.message_id, dead.headers["tenant"]) == (b"event", "m1", "north")
    assert dead.headers["x-original-queue"] == WORK
    assert dead.headers["x-final-status-code"] == 503
    assert dead.headers["x-final-error"] == "HTTP 503 Service Unavailable: under repair"
    assert dead.headers["x-final-retry-count"] == 10
    said = [line for line in bus.service.lines() if line["event"] == MAX_RETRIES_EXCEEDED]
    assert (said[-1]["letter"], said[-1]["queue"], said[-1]["status"]) == ("m1", WORK, 503)


async def test_only_the_failing_service_sees_the_retry(bus: Bus) -> None:
    bus.endpoint.script = at(CINCOUT, first(*[UNAVAILABLE] * 3))
    await bus.publish(b"event", message_id="m1")
    await eventually(lambda: len(bus.endpoint.of(b"event")) == 6)
    await eventually(bus.is_empty)
    paths = [request.path for request in bus.endpoint.seen]
    assert {path: paths.count(path) for path in paths} == {
        f"/{CINCOUT}": 4,
        f"/{STOCK}": 1,
        f"/{STRICT}": 1,
    }


async def test_client_errors_are_buried_at_once_where_the_service_says_so(bus: Bus) -> None:
    bus.endpoint.script = at(STRICT, lambda _request: Answer(422, b"no amount"))
    await bus.send(b"event", STRICT)
    dead = await bus.dead(STRICT)
    assert len(bus.endpoint.seen) == 1
    assert dead.headers["x-final-status-code"] == 422
    assert dead.headers["x-final-error"] == "HTTP 422 Unprocessable Entity: no amount"
    assert dead.headers["x-final-retry-count"] == 0


async def test_five_sleeping_letters_do_not_hold_up_twenty_others(bus: Bus) -> None:
    due = asyncio.get_running_loop().time() + 3

    def script(request: Request) -> Answer:
        early = request.body == b"early" and request.at < due
        return Answer(425, b'{"processAfterDelayMs": 1000}') if early else Answer()

    bus.endpoint.script = script
    for number in range(5):
        await bus.send(b"early", message_id=f"early-{number}")
    await eventually(lambda: len(bus.endpoint.seen) == 5)
    started = asyncio.get_running_loop().time()
    for number in range(20):
        await bus.send(b"normal", message_id=f"normal-{number}")
    await eventually(lambda: len(bus.endpoint.of(b"normal")) == 20, within=2)
    assert bus.endpoint.of(b"normal")[-1].at - started < 1
    await eventually(lambda: len([r for r in bus.endpoint.done if r.at >= due]) == 5, within=10)
    early = bus.endpoint.of(b"early")
    assert {request.retries for request in early} == {0}
    delivered = [request.headers["x-message-id"] for request in early if request.at >= due]
    assert sorted(delivered) == [f"early-{number}" for number in range(5)]


async def test_the_count_goes_on_where_a_letter_waits_without_spending_an_attempt(bus: Bus) -> None:
    """Prefetch 1 has no seat to sleep on: the letter is sent to the retry queue."""
    bus.endpoint.script = first(UNAVAILABLE, Answer(425), Answer(425), *[UNAVAILABLE] * 99)
    await bus.publish(b"event", SINGLE, message_id="m1")
    dead = await bus.dead(SINGLE)
    assert [request.retries for request in bus.endpoint.seen] == [0, 1, 1, *range(1, 11)]
    keys = {request.headers["x-original-routing-key"] for request in bus.endpoint.seen}
    assert keys == {"stock.moved"}
    assert dead.headers["x-final-retry-count"] == 10


async def test_retry_after_pauses_the_service(bus: Bus) -> None:
    bus.endpoint.script = first(Answer(429, headers={"retry-after": "1"}))
    await bus.publish(b"first", SINGLE, message_id="first")
    await eventually(lambda: bus.endpoint.done)
    for number in range(10):
        await bus.publish(b"later", SINGLE, message_id=f"later-{number}")
    await bus.send(b"stock", STOCK)
    await eventually(lambda: len(bus.endpoint.seen) == 13)
    refused, *after = bus.endpoint.seen
    paused = [request for request in after if request.path == f"/{SINGLE}"]
    assert all(request.at - refused.at >= 1 for request in paused)
    assert {request.retries for request in paused if request.body == b"later"} == {0}
    (other,) = bus.endpoint.of(b"stock")
    assert other.at - refused.at < 1  # the pause is that service's alone


async def test_a_dead_letter_moved_back_by_hand_goes_on_counting(bus: Bus) -> None:
    bus.endpoint.script = lambda _request: UNAVAILABLE
    await bus.send(b"event", message_id="m1")
    dead = await bus.dead()
    again = Message(dead.body, headers=dead.headers, message_id=dead.message_id)
    await bus.channel.default_exchange.publish(again, WORK)
    dead = await bus.dead()
    assert [request.retries for request in bus.endpoint.seen] == [*range(11), 10]
    assert dead.headers["x-final-retry-count"] == 10


async def test_an_endpoint_that_is_down_for_three_retries_and_then_up(
    rabbit_url: str, service: Service, port: int
) -> None:
    endpoint = Endpoint()
    async with channel_to(rabbit_url) as channel:
        bus = Bus(channel, endpoint, service)
        await bus.send(b"event", message_id="down")
        await eventually(lambda: len(retried(service, "down")) >= 3)
        async with listening(endpoint, port):
            await eventually(lambda: endpoint.done)
            await eventually(bus.is_empty)
    (request,) = endpoint.seen
    assert request.retries == len(retried(service, "down")) >= 3


def retried(service: Service, letter: str) -> list[dict[str, Any]]:
    """The retries of one letter that the service wrote down."""
    return [line for line in service.verdicts("retry") if line["letter"] == letter]


async def test_the_queues_stand_with_their_arguments(bus: Bus, kind: str) -> None:
    """Declared again with what the table says: any other argument would be refused."""
    topology = tables.tables((CINCOUT,), timedelta(seconds=WAIT), QueueType(kind))
    for queue in topology.queues:
        await bus.channel.declare_queue(queue.name, durable=True, arguments=queue.arguments)
    for exchange in topology.exchanges:
        await bus.channel.declare_exchange(exchange.name, exchange.type.value, durable=True)
