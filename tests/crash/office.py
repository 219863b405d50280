"""The service as these tests run it: a small prefetch, one route, a fixed place for its settings."""

from __future__ import annotations

from pathlib import Path

from tests.kit.process import Service, environment

PREFETCH = 50
ROUTES = '{"order.created" = 2}'


def office(
    rabbit_url: str, database_url: str, folder: Path, *command: str, **settings: str
) -> Service:
    """A service that is not started yet."""
    small = {"DLO_DLQ_PROCESSOR__PREFETCH": str(PREFETCH), "DLO_ROUTES": ROUTES}
    return Service(environment(rabbit_url, database_url, **small | settings), folder, command)
