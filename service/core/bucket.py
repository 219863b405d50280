"""A token bucket: so many a second on average, and never many at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

# What is due in this time may leave together.
BURST_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many may leave now; begins with one, so that a restart is no burst."""

    rate: float
    at: float
    tokens: float = 1.0

    @property
    def depth(self) -> float:
        """The most that may leave together."""
        return max(1.0, self.rate * BURST_SECONDS)

    def filled(self, now: float) -> Bucket:
        """The same bucket, later."""
        dripped = self.tokens + (now - self.at) * self.rate
        return replace(self, at=now, tokens=min(self.depth, dripped))

    @property
    def whole(self) -> int:
        """How many may leave."""
        return int(self.tokens + 1e-9)

    def without(self, count: int) -> Bucket:
        """After so many have left."""
        return replace(self, tokens=self.tokens - count)

    def until(self, count: int) -> float:
        """Seconds until so many may leave, or as many as ever leave together."""
        return max(0.0, (min(count, self.depth) - self.tokens) / self.rate)
