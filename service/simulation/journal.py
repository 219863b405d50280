"""What happened on the simulated broker, in order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.simulation.letter import Letter


class Happening(StrEnum):
    """The kinds of things that happen to a letter."""

    PUBLISHED = "published"
    RETURNED = "returned"  # mandatory, and nothing took it
    ARRIVED = "arrived"
    DELIVERED = "delivered"
    ACKNOWLEDGED = "acknowledged"
    REQUEUED = "requeued"
    DIED = "died"
    HELD = "held"  # dead, and its queue keeps it until somebody takes it
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one letter."""

    at: datetime
    what: Happening
    where: str  # a queue, or the exchange of a publish
    letter: Letter
    why: str = ""
