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
    from service.rooms import kind_of, rooms_of
    from service.topology.receipts import tables

    rooms = rooms_of(settings, lambda _key: None)
    return sum((room.topology for room in rooms), tables(kind_of(settings)))


def sends_of(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every kind of address that they send letters to."""
    from service.core.plan import RECEIPTS

    yield RECEIPTS.exchange, RECEIPTS.routing_key
    if "dlq_processor" in settings.flows:
        yield from processor.sends_of(processor.rules_of(settings))
    if "freeflow" in settings.flows:
        from service.flows.freeflow.topology import sends

        yield from ((to.exchange, to.routing_key) for to in sends())
    if "settlement" in settings.flows:
        from service.flows.settlement.topology import CREATED, REQUESTED, dead_exchange

        for topic in (CREATED, REQUESTED):
            yield from ((exchange.name, "") for exchange in (topic, dead_exchange(topic)))
    if "kdlq" in settings.flows:
        yield from _kdlq_sends(settings)
    if "event_bus" in settings.flows:
        from service.flows.event_bus import topology as bus

        for service in settings.event_bus.services:
            yield bus.main_exchange(service.name).name, "event"
            yield bus.retry_exchange(service.name).name, bus.RETRY_KEY
            yield "", bus.dead_name(service.name)


def _kdlq_sends(settings: Settings) -> Iterator[tuple[str, str]]:
    from service.flows.kdlq.topology import SKIPPED, wait_name

    for each in settings.kdlq.consumers:
        yield "", SKIPPED
        if each.broker == "rabbit":
            yield "", each.dlq
            targets = (each.redelivery or name for name in each.taken)
            yield from (("", wait_name(to) if each.redelivery_delay else to) for to in targets)
