"""Where handlers under our middleware tell the office that they took a letter which it had sent back."""

from __future__ import annotations

from faststream.rabbit import QueueType, RabbitQueue

from service.core.plan import RECEIPTS
from service.topology.tables import Topology, durable_queue


def receipts_queue(kind: QueueType) -> RabbitQueue:
    """Through the default exchange, so that a process which knows nothing else of ours can send there."""
    return durable_queue(RECEIPTS.routing_key, kind=kind)


def tables(kind: QueueType) -> Topology:
    """One queue, and nothing else."""
    return Topology(queues=(receipts_queue(kind),))
