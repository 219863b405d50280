"""What every test may ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from threading import Timer

import pytest

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Where a test that was failed for hanging hangs on, the run ends as by Ctrl-C."""
    asked = (item.config.getoption("timeout"), os.environ.get("PYTEST_TIMEOUT"))
    patience = float(next((a for a in asked if a is not None), item.config.getini("timeout")))
    watch = Timer(2 * patience, lambda: os.kill(os.getpid(), signal.SIGTERM))
    watch.daemon = True
    if patience:
        watch.start()
    try:
        return (yield)
    finally:
        watch.cancel()
