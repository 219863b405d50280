"""The programs the office needs on a machine, and how each is called by its packagers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from deploy.local.erlang import rabbitmq_script
from deploy.local.postgres_programs import bin_folder


@dataclass(frozen=True, slots=True)
class Need:
    """A program that must be there, its packages, and the services they would set up."""

    title: str
    is_met: Callable[[], bool]
    apt: tuple[str, ...]
    brew: tuple[str, ...]
    services: tuple[str, ...] = ()


RABBITMQ = Need(
    "RabbitMQ",
    lambda: rabbitmq_script("rabbitmq-server") is not None,
    apt=("rabbitmq-server",),
    brew=("rabbitmq",),
    services=("rabbitmq-server.service",),
)
POSTGRESQL = Need(
    "PostgreSQL",
    lambda: bin_folder() is not None,
    apt=("postgresql",),
    brew=("postgresql@17",),
    services=("postgresql.service",),
)
NODE = Need(
    "Node.js",
    lambda: all(shutil.which(name) for name in ("node", "npm")),
    apt=("nodejs", "npm"),
    brew=("node",),
)

BY_NAME = {"rabbitmq": RABBITMQ, "postgresql": POSTGRESQL, "node": NODE}
