"""What can become of a letter of the drill, and what should."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from service.flows.dlq_processor.drill import FAIL, FAIL_PASS, PASS


@dataclass(frozen=True, slots=True)
class Sent:
    """A letter is on its way."""

    key: str
    letter: str


@dataclass(frozen=True, slots=True)
class Waits:
    """It was rejected, and waits for this retry in this tier's queue."""

    key: str
    retry: int
    tier: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """Nothing failed since it was delivered last."""

    key: str
    retries: int


@dataclass(frozen=True, slots=True)
class Died:
    """It is in dlq-queue."""

    key: str
    retries: int
    reason: str


@dataclass(frozen=True, slots=True)
class Unended:
    """The time was up before it came to an end."""

    key: str
    retries: int


End = Accepted | Died | Unended
Event = Sent | Waits | End

AS_WRITTEN = {PASS: "accepted", FAIL: "dead letter", FAIL_PASS: "accepted when retried"}


def is_as_written(end: End) -> bool:
    """Whether the letter ended as the document says of its key."""
    match end:
        case Accepted(key, retries):
            return (key, retries > 0) in ((PASS, False), (FAIL_PASS, True))
        case Died(key, retries):
            return key == FAIL and retries > 0
        case Unended():
            return False
        case never:
            assert_never(never)
