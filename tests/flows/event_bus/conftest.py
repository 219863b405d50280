"""A running service with four services of the bus behind it, on a clean broker; once per kind of queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from deploy.local.ports import free_port
from service.flows.event_bus import topology as tables
from tests.kit.broker import channel_to, clean, depth, drain
from tests.kit.endpoint import Endpoint, listening
from tests.kit.fixtures import sqlite_in
from tests.kit.process import Service, environment
from tests.servers.waiting import eventually

CINCOUT, STOCK, STRICT, SINGLE = "wms-cincout", "wms-stock", "wms-strict", "solo-single"
SERVICES = (CINCOUT, STOCK, STRICT, SINGLE)
WAIT = 0.1
TIMEOUT = 0.4


def bus_environment(
    rabbit_url: str,
    folder: Path,
    port: int,
    kind: str = "classic",
    timeout: str = "400ms",
    **more: str,
) -> dict[str, str]:
    """Settings with every service of the tests at one endpoint, waits of tenths of a second."""
    doors = {name: f'endpoint="http://127.0.0.1:{port}/{name}"' for name in SERVICES}
    extra = {STRICT: ", refuse_client_errors=true", SINGLE: ", prefetch=1"}
    tables_ = [
        f'{{name="{name}", {door}, timeout="{timeout}"{extra.get(name, "")}}}'
        for name, door in doors.items()
    ]
    given = {
        "DLO_FLOWS": '["event_bus"]',
        "DLO_QUEUES__TYPE": kind,
        "DLO_EVENT_BUS__RETRY_AFTER": "100ms",
        "DLO_EVENT_BUS__SERVICES": f"[{', '.join(tables_)}]",
    }
    return environment(rabbit_url, sqlite_in(folder), **given, **more)


async def clean_bus(rabbit_url: str) -> None:
    """Delete what the bus declares for the services of the tests."""
    queues = (tables.work_name, tables.retry_name, tables.dead_name)
    exchanges = (tables.main_exchange, tables.retry_exchange)
    await clean(
        rabbit_url,
        *(name(service) for service in SERVICES for name in queues),
        exchanges=[exchange(service).name for service in SERVICES for exchange in exchanges],
    )


@dataclass
class Bus:
    """Both sides of the bus: a producer's channel, and the endpoint of all services."""

    channel: AbstractChannel
    endpoint: Endpoint
    service: Service

    async def publish(self, body: bytes, service: str = CINCOUT, **properties: Any) -> None:
        """An event of a producer, for all services of the prefix."""
        main = await self.channel.get_exchange(tables.main_exchange(service).name, ensure=False)
        await main.publish(Message(body, **properties), "stock.moved")

    async def send(self, body: bytes, service: str = CINCOUT, **properties: Any) -> None:
        """An event into one service's queue alone."""
        message = Message(body, **properties)
        await self.channel.default_exchange.publish(message, tables.work_name(service))

    async def dead(self, service: str = CINCOUT, within: float = 10) -> AbstractIncomingMessage:
        """Wait for the one dead letter of a service."""
        queue = tables.dead_name(service)

        async def is_there() -> bool:
            return await depth(self.channel, queue) >= 1

        await eventually(is_there, within)
        (letter,) = await drain(self.channel, queue)
        return letter

    async def is_empty(self) -> bool:
        """Whether no letter of any service is left anywhere."""
        names = (tables.work_name, tables.retry_name, tables.dead_name)
        left = [await depth(self.channel, name(s)) for s in SERVICES for name in names]
        return not any(left)


@pytest.fixture(scope="module", params=["classic", "quorum"])
def kind(request: pytest.FixtureRequest) -> str:
    """The type of the queues."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="module")
def port() -> int:
    """Where the services' endpoint listens."""
    return free_port()


@pytest.fixture(scope="module")
def service(
    rabbit_url: str, kind: str, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The running service."""
    folder = tmp_path_factory.mktemp("bus")
    service = Service(bus_environment(rabbit_url, folder, port, kind), folder)
    asyncio.run(clean_bus(rabbit_url))
    try:
        asyncio.run(service.start())
        yield service
    finally:
        service.kill()
        asyncio.run(clean_bus(rabbit_url))
    assert "Traceback" not in service.said()


@pytest.fixture
async def bus(rabbit_url: str, service: Service, port: int) -> AsyncIterator[Bus]:
    """The bus with nothing on it, and an endpoint that takes everything until it is told otherwise."""
    endpoint = Endpoint()
    async with channel_to(rabbit_url) as channel, listening(endpoint, port):
        bus = Bus(channel, endpoint, service)
        yield bus
        await eventually(bus.is_empty, within=10)
