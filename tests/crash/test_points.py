"""`kill -9` at each point where it could hurt: between any two steps of a letter's way."""

from __future__ import annotations

import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from service.ledger.engine import sqlite_file
from tests.crash.office import PREFETCH, office
from tests.crash.traffic import Traffic, ending, traffic
from tests.kit.process import Service
from tests.servers.waiting import eventually

BATCH = 100


def ask_to_end(service: Service) -> None:
    """SIGTERM: it stops taking letters, and is killed while it finishes those in hand."""
    assert service.process is not None
    service.process.send_signal(signal.SIGTERM)


def change_a_route(service: Service) -> None:
    """Plain SQL, so that the service reads the table again."""
    file = sqlite_file(service.environment["DLO_DATABASE__URL"])
    with closing(sqlite3.connect(file, timeout=10)) as connection, connection:
        connection.execute("INSERT INTO dlq_event_config (name, max_retries) VALUES ('x.y', 1)")


@dataclass(frozen=True, slots=True)
class Death:
    """A point, the pass at which the service dies there, and what brings it there in mid-flow."""

    point: str
    passes: int
    push: Callable[[Service], None] | None = None


DEATHS = (
    Death("ledger_migrated", 1),  # first: later the tables stand already
    Death("delivered", 40),
    Death("judged", 40),
    Death("published", 3),
    Death("confirmed", 3),
    Death("before_ack", 40),
    Death("ack_sent", 3),
    Death("routes_read", 2, change_a_route),
    Death("leaving", 1, ask_to_end),
)


async def test_no_letter_is_lost_wherever_the_service_is_killed(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    async with traffic(rabbit_url) as letters:
        for death in DEATHS:
            await dies(office(rabbit_url, sqlite_url, tmp_path, *command(death)), death, letters)
        async with ending(office(rabbit_url, sqlite_url, tmp_path)) as service:
            service.spawn()
            report = await letters.ends(service)
    print(report)
    report.demand(most=len(DEATHS) * PREFETCH)


async def dies(service: Service, death: Death, letters: Traffic) -> None:
    """One life, with letters to move, that ends by its own hand."""
    await letters.send(BATCH)
    before = letters.moved
    async with ending(service):
        service.spawn()
        if death.push is not None:
            await letters.moves(upto=before + 1)
            death.push(service)
        await eventually(lambda: not service.is_running(), within=30)
        assert service.process is not None
        assert service.process.returncode == -signal.SIGKILL, f"{death}: {service.said()[-2000:]}"


def command(death: Death) -> tuple[str, ...]:
    """The service that dies there."""
    return (sys.executable, "-m", "tests.crash.dies_at", death.point, str(death.passes))
