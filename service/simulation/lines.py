"""One queue of the simulated broker: who stands where, who expires when, who has been handed out."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from faststream.rabbit import RabbitQueue

from service.simulation.letter import Letter
from service.topology.arguments import is_quorum, time_to_live


@dataclass(slots=True)
class Place:
    """One letter's stay in one queue."""

    letter: Letter
    order: tuple[int, int]
    expires: datetime | None
    round: int  # of the broker's moves, the one in which it came
    returns: int = 0  # how often it was handed out and came back
    count: int = 0  # how many of those this queue counts against its delivery limit


@dataclass(slots=True)
class Line:
    """A queue: ready places in order, places handed out by delivery tag, dead letters held back."""

    row: RabbitQueue
    ready: list[Place] = field(default_factory=list)
    out: dict[int, Place] = field(default_factory=dict)
    held: list[Letter] = field(default_factory=list)
    seen: int = 0

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.row.name

    def join(self, letter: Letter, now: datetime, round: int) -> None:
        """A new letter goes to the end."""
        self.ready.append(Place(letter, (1, self._next()), _expiry(self.row, letter, now), round))

    def hand_out(self, tag: int) -> Place:
        """The first one leaves the line but not the queue."""
        place = self.ready.pop(0)
        self.out[tag] = place
        return place

    def take_back(self, place: Place, *, last: bool) -> None:
        """A classic queue remembers where it stood; a quorum queue puts it behind earlier returns, or
        behind everybody."""
        place.returns += 1
        if is_quorum(self.row):
            place.order = (1 if last else 0, self._next())
        insort(self.ready, place, key=lambda standing: standing.order)

    def due(self) -> datetime | None:
        """When the first one expires; those behind it wait, even if their time is over."""
        return self.ready[0].expires if self.ready else None

    def is_due(self, now: datetime) -> bool:
        """Whether the first one's time is over."""
        due = self.due()
        return due is not None and due <= now

    def _next(self) -> int:
        self.seen += 1
        return self.seen


def _expiry(row: RabbitQueue, letter: Letter, now: datetime) -> datetime | None:
    lives = [life for life in (time_to_live(row), _own_life(letter)) if life is not None]
    return now + min(lives) if lives else None


def _own_life(letter: Letter) -> timedelta | None:
    """The `expiration` property: milliseconds, as text."""
    expiration = letter.properties.get("expiration")
    if isinstance(expiration, str) and expiration.isdecimal():
        return timedelta(milliseconds=int(expiration))
    return None
