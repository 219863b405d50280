"""How well each part is: what `/readyz`, the status and the gauges say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from service.archive import Archive
from service.edge.opening import Closed, Opening
from service.flows.room import Room
from service.ledger.routes import Away, Routes
from service.web.health import Check, Health

PATIENCE = 15.0


def checks_of(
    opening: Opening, routes: Routes, archive: Archive, rooms: Iterable[Room]
) -> dict[str, Check]:
    """RabbitMQ, the database, the intake; and rooms that have more to say of themselves."""
    troubled = {room.name: room.trouble for room in rooms if room.trouble is not None}
    return {
        "rabbitmq": partial(rabbitmq, opening),
        "database": partial(database, routes),
        "intake": archive.health,
        **{name: partial(_trouble, told) for name, told in troubled.items()},
    }


def blind(opening: Opening, archive: Archive) -> str:
    """Why a letter that dies now would not be seen in the ledger; empty while it would be.

    Where nothing is taken in at all nobody waits for it: a replay says so before it starts.
    """
    if not opening.post.is_open:
        return "publishing is down"
    return "" if archive.intake is None else archive.intake.held


def rabbitmq(opening: Opening) -> Health:
    """Whether we consume, and letters leave."""
    match opening.state:
        case Closed(since, why):
            return Health(False, f"{why} (since {since:%H:%M:%S} UTC)")
        case _:
            return _moving(opening)


def _moving(opening: Opening) -> Health:
    """Whether letters leave: a connection that stands is not enough."""
    if opening.gap:
        return Health(False, opening.gap)
    if not opening.post.is_open:
        return Health(False, "publishing is down")
    lane = opening.lane
    if lane is not None and lane.gap is not None:
        return Health(False, f"the wire lane is down: {opening.explain(lane.gap)}")
    for trouble in (opening.post.trouble, lane.trouble if lane else None):
        if trouble is not None and asyncio.get_running_loop().time() - trouble.since > PATIENCE:
            return Health(False, f"letters are held: {trouble.says}")
    return Health(True, "up")


def database(routes: Routes) -> Health:
    """Whether the ledger answers."""
    match routes.state:
        case Away(since, why):
            return Health(False, f"{why} (since {since:%H:%M:%S} UTC; last known routes in use)")
        case _:
            return Health(True, "up")


def _trouble(told: Callable[[], str]) -> Health:
    return Health(not told(), told() or "up")
