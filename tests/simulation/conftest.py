"""A real RabbitMQ beside the simulated one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aio_pika
import pytest
from aio_pika.abc import AbstractConnection


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all examples of a test."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def connection(runner: asyncio.Runner, rabbit_url: str) -> Iterator[AbstractConnection]:
    """One connection for all of them."""
    connection = runner.run(aio_pika.connect(rabbit_url))
    yield connection
    runner.run(connection.close())
