"""What every test may ask for."""

from __future__ import annotations

import signal

from tests.servers.fixtures import (
    database_url,
    postgres,
    postgres_url,
    rabbit_node,
    rabbit_url,
    servers_folder,
    sqlite_url,
)

__all__ = [
    "database_url",
    "postgres",
    "postgres_url",
    "rabbit_node",
    "rabbit_url",
    "servers_folder",
    "sqlite_url",
]


def pytest_configure() -> None:
    """A SIGTERM ends the run as Ctrl-C does: with every server stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
