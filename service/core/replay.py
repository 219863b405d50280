"""How a replay is governed: what a job does next, as a function of what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from service.core.states import ReplayState, Wanted

# Fewer letters than these say nothing: one of one is all of them.
SAMPLE = 20
BY_AN_OPERATOR = "stopped by an operator"


@dataclass(frozen=True, slots=True)
class Terms:
    """What the operator agreed to: how fast, how many first, when to stop, how long to watch."""

    rate: float
    canary: int
    stop_percent: float
    watch: timedelta


@dataclass(frozen=True, slots=True)
class Progress:
    """The letters of a job, counted."""

    pending: int
    """Not sent yet."""
    in_doubt: int = 0
    """Claimed, and whoever claimed them did not live to say whether they were sent."""
    sent: int = 0
    """Confirmed by the broker, whatever became of them since."""
    watched: int = 0
    """Of those sent, the ones without a result: they may still come back."""
    back: int = 0
    unroutable: int = 0

    @property
    def to_send(self) -> int:
        """What a job that goes on would still send."""
        return self.pending + self.in_doubt

    @property
    def failed(self) -> int:
        """Died again, or never found a queue."""
        return self.back + self.unroutable

    @property
    def tried(self) -> int:
        """What the failed are compared with."""
        return self.sent + self.unroutable


@dataclass(frozen=True, slots=True)
class Send:
    """Send letters, as the rate allows; no more than so many."""

    most: int


@dataclass(frozen=True, slots=True)
class Watch:
    """Nothing is sent; letters may still come back."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """The canary has passed."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Send nothing until an operator says so; the position is kept."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Have the queues to itself, and begin; or go on where it was."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Send no more, ever."""

    reason: str


@dataclass(frozen=True, slots=True)
class GiveBack:
    """It was stopped, and some letters do not know yet that they will not be sent."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Every letter has its result."""


Step = Begin | Send | Watch | Ramp | Pause | Stop | GiveBack | Finish


def next_step(state: ReplayState, wanted: Wanted, terms: Terms, now: Progress) -> Step:
    """The one place where a job is governed."""
    match state:
        case ReplayState.STOPPED if now.pending:
            return GiveBack()
        case ReplayState.STOPPED | ReplayState.FINISHED:
            return Watch() if now.watched else Finish()
        case _ if wanted is Wanted.STOP:
            return Stop(BY_AN_OPERATOR)
        case ReplayState.CANARY if now.failed:
            return Stop(_canary_says(now))
        case _ if now.to_send and is_over(terms, now):
            return Stop(_says(terms, now))
        case ReplayState.PAUSED if wanted is Wanted.PAUSE:
            return Watch()
        case _ if wanted is Wanted.PAUSE and now.to_send:
            return Pause()
        case ReplayState.PAUSED | ReplayState.WAITING:
            return Begin()
        case ReplayState.CANARY:
            return _canary(terms, now)
        case _ if now.to_send:
            return Send(now.to_send)
        case _:
            return Watch() if now.watched else Finish()


def is_over(terms: Terms, now: Progress) -> bool:
    """Whether more came back than was agreed to.

    Compared with all that were sent, not with those whose watch window has ended: most consumers tell
    us of failures only, and waiting for silence would cost a window's worth of letters.
    """
    return now.tried >= SAMPLE and now.failed * 100 > terms.stop_percent * now.tried


def _canary(terms: Terms, now: Progress) -> Step:
    if now.in_doubt:
        return Send(now.in_doubt)
    if now.pending and now.sent < terms.canary:
        return Send(min(now.pending, terms.canary - now.sent))
    return Watch() if now.watched else Ramp()


def _canary_says(now: Progress) -> str:
    became = "came back" if now.back else "found no queue"
    return f"the canary {became}: {now.failed} of {now.tried}"


def _says(terms: Terms, now: Progress) -> str:
    became = "came back" if now.back else "found no queue"
    if now.back and now.unroutable:
        became = "came back or found no queue"
    return f"{now.failed} of {now.tried} {became}, more than {terms.stop_percent:g} %"
