"""The states of a letter in the ledger, of a cause, of a replay and of a letter within a replay."""

from enum import StrEnum


class LetterState(StrEnum):
    """Where a dead letter stands."""

    PARKED = "parked"
    """In the ledger, needs a person or a rule."""
    SENT = "sent"
    """Replayed, confirmed by the broker."""
    BACK = "back"
    """Replayed, and buried again."""
    HANDLED = "handled"
    """Replayed, and a handler under our middleware took it."""
    QUIET = "quiet"
    """Replayed, and not seen again in the watch window."""
    DISCARDED = "discarded"
    """Dropped on purpose; restorable until it is forgotten."""


OPEN = (LetterState.PARKED, LetterState.BACK)
"""The states that need somebody: what a replay or a discard may take."""


class CauseState(StrEnum):
    """The life of a cause: new → acknowledged → muted → resolved → regressed."""

    NEW = "new"
    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    RESOLVED = "resolved"
    REGRESSED = "regressed"


class ReplayState(StrEnum):
    """How far a replay job has come."""

    WAITING = "waiting"
    """Another replay is sending to one of its queues."""
    CANARY = "canary"
    RUNNING = "running"
    PAUSED = "paused"
    WATCHING = "watching"
    """Everything is sent; some letters may still come back."""
    FINISHED = "finished"
    STOPPED = "stopped"
    """By an operator, or by itself because too many came back."""


class ItemState(StrEnum):
    """What became of one letter of a replay."""

    PENDING = "pending"
    CLAIMED = "claimed"
    """About to be sent; after a crash nobody knows whether it was, so it is sent again."""
    SENT = "sent"
    BACK = "back"
    HANDLED = "handled"
    QUIET = "quiet"
    UNROUTABLE = "unroutable"
    SKIPPED = "skipped"
    """Somebody discarded it, or another replay took it, before its turn came."""
    STOPPED = "stopped"
    """The replay was stopped before its turn came."""


class Wanted(StrEnum):
    """What an operator wants of a replay."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class Attempts(StrEnum):
    """Whether a letter that is sent back begins its count anew."""

    CONTINUED = "continued"
    """It gets one attempt, and is back at once if that fails."""
    FRESH = "fresh"
