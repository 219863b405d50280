"""The five verdicts; each carries what a person wants to read about it."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Why(StrEnum):
    """Why a letter was given up: a closed set, fit to label a metric."""

    SPENT = "spent"
    NO_ROUTE = "no_route"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    NO_ORIGIN = "no_origin"
    UNROUTABLE = "unroutable"
    OUR_FAULT = "our_fault"
    EXPIRED = "expired"
    DELIVERY_LIMIT = "delivery_limit"


@dataclass(frozen=True, slots=True)
class Accept:
    """Done: acknowledge."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Back to the same queue, after a pause in which the letter is held."""

    pause: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Retry:
    """Wait somewhere, then come back: the number of the retry about to be made, and the wait before it.

    A letter that came too early keeps its number: no attempt is spent.
    """

    number: int
    after: timedelta


@dataclass(frozen=True, slots=True)
class Bury:
    """To the dead letters, for people."""

    reason: str
    why: Why = Why.SPENT


@dataclass(frozen=True, slots=True)
class Discard:
    """Dropped on purpose, with a trace."""

    reason: str


Verdict = Accept | Requeue | Retry | Bury | Discard
