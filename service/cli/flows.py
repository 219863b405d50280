"""Every flow that the settings switch on, for commands that contact nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.settings import Settings

if TYPE_CHECKING:
    from service.topology.tables import Topology


def topology_of(settings: Settings) -> Topology:
    """Everything they declare."""
    from service.rooms import kind_of, rooms_of
    from service.topology.receipts import tables

    rooms = rooms_of(settings, lambda _key: None)
    return sum((room.topology for room in rooms), tables(kind_of(settings)))


def sends_of(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every kind of address that they send letters to."""
    from service import sends

    yield from sends.sends_of(settings)
