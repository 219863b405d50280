"""The service as these tests run it: a small prefetch, one route, a fixed place for its settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from yarl import URL

from tests.kit.process import Service, environment
from tests.servers.proxy import Proxy, proxied

PREFETCH = 50
ROUTES = '{"order.created" = 2}'


def office(
    rabbit_url: str, database_url: str, folder: Path, *command: str, **settings: str
) -> Service:
    """A service that is not started yet."""
    small = {"DLO_DLQ_PROCESSOR__PREFETCH": str(PREFETCH), "DLO_ROUTES": ROUTES}
    return Service(environment(rabbit_url, database_url, **small | settings), folder, command)


@asynccontextmanager
async def before(rabbit_url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the broker, and the URL that leads through it."""
    url = URL(rabbit_url)
    async with proxied(url.host or "", url.port or 5672) as proxy:
        yield proxy, str(url.with_host("127.0.0.1").with_port(proxy.port))
