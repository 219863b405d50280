"""Who receives letters from the simulated broker, and how many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from service.simulation.letter import Delivery


@dataclass(eq=False, slots=True)
class Consumer:
    """A subscription to one queue."""

    queue: str
    receive: Callable[[Delivery], None]
    prefetch: int = 0
    no_ack: bool = False
    outstanding: set[int] = field(default_factory=set)

    @property
    def has_room(self) -> bool:
        """Whether the prefetch lets one more letter through."""
        return self.prefetch == 0 or len(self.outstanding) < self.prefetch


def ready_consumer(consumers: Iterable[Consumer], queue: str) -> Consumer | None:
    """The next one in turn that has room for a letter of this queue."""
    fitting = (c for c in consumers if c.queue == queue and c.has_room)
    return next(fitting, None)
