"""A job: one delivery on the wire lane, what is to be done with it, and how far that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from service.core.plan import Plan
from service.edge.post import Trouble
from service.edge.wire.delivered import Delivered
from service.edge.wire.parcel import Parcel
from service.edge.wire.window import Stage

if TYPE_CHECKING:
    from service.edge.wire.window import Window


@dataclass(slots=True)
class Errand:
    """What a letter's verdict asks of the lane: carry out the plan, and tell which one it was in the end."""

    parcel: Parcel
    plan: Plan
    tell: Callable[[Plan], None]


class Clerk(Protocol):
    """Gives letters of one queue their verdicts."""

    def attend(self, delivered: Delivered) -> Errand:
        """The verdict on a letter, as a plan."""

    def stumbled(self, delivered: Delivered, bug: Exception) -> Errand:
        """The same for a letter on which our own code stumbled: it goes to people."""

    def taken_back(self, letters: int, why: str) -> None:
        """The broker took back so many letters before they were settled."""


class Job:
    """One delivery in our hands."""

    __slots__ = (
        "clerk",
        "delivered",
        "errand",
        "has_stumbled",
        "held",
        "plan",
        "stage",
        "step",
        "window",
    )

    def __init__(self, delivered: Delivered, clerk: Clerk, window: Window) -> None:
        self.delivered, self.clerk, self.window = delivered, clerk, window
        self.stage = Stage.WORKING
        self.errand: Errand | None = None
        self.plan: Plan | None = None
        self.step = 0
        self.has_stumbled = False
        self.held: Trouble | None = None
        """Since when its send is tried again, and why."""

    @property
    def is_ours(self) -> bool:
        """Whether the broker has not taken the letter back."""
        return self.delivered.consumer.is_open
