"""Queues that refuse letters for now: each is left alone for a while, longer every time."""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE = 0.5, 2.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why, and until when (by the loop's clock) nothing is sent there."""

    says: str
    until: float
    pause: float


class Refusals:
    """What a job knows of queues that are full."""

    def __init__(self) -> None:
        self._queues: dict[str, Refusal] = {}

    @property
    def says(self) -> str:
        """Why letters are held; empty while none are."""
        return next((refusal.says for refusal in self._queues.values()), "")

    def refuse(self, queue: str, says: str, now: float) -> None:
        """It did not take a letter; many that were sent together count once."""
        last, pause = self._queues.get(queue), PATIENCE[0]
        if last is not None and last.until > now:
            return
        if last is not None:
            pause = min(last.pause * 2, PATIENCE[1])
        self._queues[queue] = Refusal(says, now + pause, pause)

    def forget(self, queue: str) -> None:
        """It takes letters again."""
        self._queues.pop(queue, None)

    def held(self, now: float) -> tuple[str, ...]:
        """Queues that are left alone now."""
        return tuple(name for name, refusal in self._queues.items() if refusal.until > now)

    def wait(self, now: float) -> float:
        """How long until the next of them is tried again; 0 where none is left alone."""
        pauses = [refusal.until - now for refusal in self._queues.values() if refusal.until > now]
        return min(pauses, default=0.0)
