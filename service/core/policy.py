"""How often a letter is tried again, after which waits, and what is hopeless from the start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from service.core.duration import say
from service.core.route import Route

FOR_EVER = -1
SPENT = 2**31 - 1
"""What a count that cannot be read counts as: no limit, not even none, allows one more."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`max_retries = n` means n retries after the first attempt; -1 means without end.

    A ladder without a wait means: back to the same queue at once. `max_burials` limits in the same way
    how often a letter may go to the dead letters: over it, it is discarded.
    """

    ladder: tuple[timedelta, ...]
    max_retries: int
    hopeless: str = ""
    max_burials: int = FOR_EVER

    def __post_init__(self) -> None:
        if self.max_retries < FOR_EVER:
            raise ValueError(f"max_retries must be -1 or more, not {self.max_retries}")
        if self.max_burials < FOR_EVER:
            raise ValueError(f"max_burials must be -1 or more, not {self.max_burials}")

    def is_spent(self, retries: int) -> bool:
        """Whether a letter that was retried this often has no retry left."""
        return _is_reached(self.max_retries, retries)

    def is_beyond_burial(self, kills: int) -> bool:
        """Whether a letter that went to the dead letters this often may not go there again."""
        return _is_reached(self.max_burials, kills)

    def wait_before(self, number: int, wish: timedelta | None = None) -> timedelta:
        """The wait before this retry: the one wished for if the ladder has it, else the next one;
        past the end of the ladder the last wait repeats."""
        if wish is not None and wish in self.ladder:
            return wish
        return self.ladder[min(number, len(self.ladder)) - 1]

    def in_words(self) -> str:
        """The rules as a person reads them."""
        if self.hopeless:
            return self.hopeless
        if self.max_retries == 0:
            return "not retried"
        waits = ", ".join(say(wait) for wait in self.ladder) or "no wait"
        match self.max_retries:
            case -1:
                often = "without end"
            case 1:
                often = "once"
            case most:
                often = f"at most {most} times"
        return f"retried {often}, after {waits}"


def _is_reached(limit: int, count: int) -> bool:
    return count >= SPENT or (limit != FOR_EVER and count >= limit)


def policy_for(
    key: str, route: Route | None, ladder: tuple[timedelta, ...], max_retries: int
) -> Policy:
    """The policy of a routing key: its route's, with the defaults where the route is silent."""
    if route is None:
        return Policy(ladder, 0, hopeless=f"no route for {key}")
    limit = max_retries if route.max_retries is None else route.max_retries
    return Policy(route.delays or ladder, limit)
