"""Every flow that the settings switch on, for commands that contact nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.cli import processor
from service.settings import Settings

if TYPE_CHECKING:
    from service.topology.tables import Topology


def topology_of(settings: Settings) -> Topology:
    """Everything they declare."""
    from service.rooms import rooms_of
    from service.topology.tables import Topology

    rooms = rooms_of(settings, lambda _key: None)
    return sum((room.topology for room in rooms), Topology())


def sends_of(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every kind of address that they send letters to."""
    if "dlq_processor" in settings.flows:
        yield from processor.sends_of(processor.rules_of(settings))
    if "freeflow" in settings.flows:
        from service.flows.freeflow.topology import sends

        yield from ((to.exchange, to.routing_key) for to in sends())
