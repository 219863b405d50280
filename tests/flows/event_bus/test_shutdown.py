"""A shutdown in the middle of a sleep, a push or a pause spends no attempt and loses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

import pytest

from deploy.local.ports import free_port
from tests.flows.event_bus.conftest import (
    CINCOUT,
    SINGLE,
    STOCK,
    Bus,
    bus_environment,
    clean_bus,
)
from tests.kit.broker import channel_to
from tests.kit.endpoint import Answer, Endpoint, Request, listening
from tests.kit.process import Service, running
from tests.servers.waiting import eventually

GRACE = 1.0


def never_done(request: Request) -> Answer:
    """One service sends its letters to sleep, one does not answer, one asks for a long pause."""
    match request.path:
        case "/wms-cincout":
            return Answer(425, b'{"processAfterDelayMs": 60000}')
        case "/wms-stock":
            return Answer(after=60)
        case _:
            return Answer(429, headers={"retry-after": "60"})


@pytest.mark.parametrize("queues", ["classic", "quorum"])
async def test_a_shutdown_is_not_an_attempt(rabbit_url: str, tmp_path: Path, queues: str) -> None:
    await clean_bus(rabbit_url)
    port, endpoint = free_port(), Endpoint(never_done)
    grace = {"DLO_SHUTDOWN__GRACE": f"{GRACE:g}s"}
    given = bus_environment(rabbit_url, tmp_path, port, queues, "30s", **grace)
    async with running(Service(given, tmp_path)) as service, channel_to(rabbit_url) as channel:
        async with listening(endpoint, port):
            bus = Bus(channel, endpoint, service)
            await bus.send(b"pausing", SINGLE, message_id="pausing")
            await eventually(lambda: endpoint.of(b"pausing"))
            await bus.send(b"asleep", CINCOUT, message_id="asleep")
            await bus.send(b"pushed", STOCK, message_id="pushed")
            await bus.send(b"paused", SINGLE, message_id="paused")
            await eventually(lambda: endpoint.of(b"asleep") and endpoint.of(b"pushed"))
            started = monotonic()
            assert await asyncio.to_thread(service.stop) == 0
            assert GRACE <= monotonic() - started < GRACE + 5
        taking = Endpoint()
        async with listening(taking, port):
            await service.start()
            await eventually(lambda: len(taking.done) == 4, within=10)
            await eventually(Bus(channel, taking, service).is_empty)
        assert sorted((r.body, r.retries) for r in taking.done) == [
            (b"asleep", 0),
            (b"paused", 0),
            (b"pausing", 1),  # that attempt was made
            (b"pushed", 0),
        ]
    await clean_bus(rabbit_url)
    assert "Traceback" not in service.said()
