"""Fixtures: a RabbitMQ, a PostgreSQL, a fresh database; started when first asked for."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from deploy.local import needs
from deploy.local.definitions import GUEST, Account, definitions
from deploy.local.postgres import Server
from deploy.local.rabbitmq import Node
from tests.servers import leftovers

BROKER = "DLO_TEST_RABBIT_URL"
# A user who may enter, and touch nothing of ours.
LIMITED = Account("limited", "limited", r"^limited\..*")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """Where this run's servers live; those of killed runs are ended first."""
    leftovers.sweep()
    folder = leftovers.new_folder()
    yield folder
    leftovers.clear(folder)


@pytest.fixture(scope="session")
def rabbit_node(servers_folder: Path) -> Node:
    """Our own RabbitMQ, to be stopped, killed and restarted at will."""
    if os.environ.get(BROKER):
        pytest.skip(f"needs a RabbitMQ of our own; {BROKER} names somebody's")
    demand(needs.RABBITMQ)
    node = Node(servers_folder / "rabbitmq", definitions((GUEST, LIMITED)))
    node.start()
    return node


@pytest.fixture(scope="session")
def rabbit_url(request: pytest.FixtureRequest) -> str:
    """The RabbitMQ under test: the one the environment names, else our own."""
    if named := os.environ.get(BROKER):
        return named
    node: Node = request.getfixturevalue("rabbit_node")
    return node.url


@pytest.fixture(scope="session")
def postgres(servers_folder: Path) -> Server:
    """Our own PostgreSQL server."""
    demand(needs.POSTGRESQL)
    server = Server(servers_folder / "postgres")
    server.start()
    return server


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """A fresh, empty PostgreSQL database."""
    name = f"test_{next(_numbers)}"
    yield postgres.create_database(name)
    if postgres.is_running:
        postgres.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """An SQLite file that does not exist yet."""
    return f"sqlite+aiosqlite:///{tmp_path / 'dlo.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database, once of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def demand(need: needs.Need) -> None:
    """Go on where the server is installed; else skip, and in CI fail."""
    if not need.is_met():
        _missing(f"{need.title} is not installed: run `uv run just servers`")


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
