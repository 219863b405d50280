"""The drawing in each flow's README, made from its topology: `python -m service.flows.drawings`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from faststream.rabbit import QueueType

from service.flows.dlq_processor.topology import tables
from service.flows.event_bus import topology as event_bus
from service.flows.freeflow.policy import Rules as Freeflow
from service.flows.kdlq import topology as kdlq
from service.flows.settlement.topology import tables as settlement_tables
from service.topology.drawing import mermaid
from service.topology.tables import Topology

MARKER = "<!-- drawing: written by `just drawings` -->"
ROOMS = Path(__file__).parent


def topologies() -> dict[str, Topology]:
    """Each flow as its document writes it."""
    tiers = tuple(timedelta(seconds=seconds) for seconds in (10, 15, 20))
    services, wait = ("wms-cincout", "wms-stock"), timedelta(seconds=5)
    orders = kdlq.Names("orders", "orders.dlq", "orders.again", timedelta(seconds=10))
    skipped = Topology(queues=(kdlq.skipped_queue(QueueType.CLASSIC),))
    return {
        "dlq_processor": tables(tiers, QueueType.CLASSIC, drill=False),
        "freeflow": Freeflow().topology,
        "event_bus": event_bus.tables(services, wait, QueueType.CLASSIC),
        "kdlq": kdlq.tables((orders,), QueueType.CLASSIC) + skipped,
        "settlement": settlement_tables(3, timedelta(minutes=5), QueueType.CLASSIC),
    }


def page(room: str, topology: Topology) -> str:
    """The README with its drawing made anew."""
    text = (ROOMS / room / "README.md").read_text()
    before, _, _ = text.partition(MARKER)
    return f"{before}{MARKER}\n\n```mermaid\n{mermaid(topology)}```\n"


def main() -> None:
    """Write them all."""
    for room, topology in topologies().items():
        (ROOMS / room / "README.md").write_text(page(room, topology))


if __name__ == "__main__":
    main()
