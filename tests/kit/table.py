"""The table `dlq_event_config` as its owners fill it: plain SQL, from a program that is not ours."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.kit.process import Service
from tests.servers.waiting import eventually


def run_sql(sqlite_url: str, sql: str, *values: object) -> int:
    """Run one statement in another process's file, and say how many rows the table has then."""
    with closing(sqlite3.connect(sqlite_url.partition(":///")[2], timeout=5)) as connection:
        connection.execute(sql, values)
        connection.commit()
        count: int = connection.execute("SELECT count(*) FROM dlq_event_config").fetchone()[0]
        return count


async def add_route(
    service: Service,
    name: str,
    max_retries: int | None = None,
    delays: str | None = None,
    return_to: str | None = None,
) -> None:
    """Insert a route into a running service's table, and wait until the service has read it."""
    rows = run_sql(
        service.environment["DLO_DATABASE__URL"],
        "INSERT INTO dlq_event_config (name, max_retries, delays, return_to) VALUES (?, ?, ?, ?)",
        *(name, max_retries, delays, return_to),
    )
    await knows_routes(service, rows)


async def knows_routes(service: Service, count: int) -> None:
    """Wait until the service says that it has read so many rows."""
    await eventually(lambda: _routes_read(service) == count, within=5)


def _routes_read(service: Service) -> int | None:
    read = [line for line in service.lines() if line.get("action") == "routes_read"]
    return int(read[-1]["routes"]) if read else None
