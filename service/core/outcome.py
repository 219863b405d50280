"""How one delivery ended, and the exceptions with which a handler says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from service.core.duration import parse, say
from service.core.verdict import Why


@dataclass(frozen=True, slots=True)
class Done:
    """The handler took the letter."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work this time; another attempt may."""

    error: str
    kind: str = ""
    wish: timedelta | None = None
    """The wait that the handler asked for."""
    status: int | None = None
    """The HTTP status that said so, where one did."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The letter was understood, or could not be, and no attempt will ever take it."""

    error: str
    why: Why = Why.REFUSED
    kind: str = ""
    status: int | None = None
    """The HTTP status that said so, where one did."""


@dataclass(frozen=True, slots=True)
class TooEarly:
    """Nothing is wrong, it is not time yet: no attempt is spent."""

    wait: timedelta
    crowded: bool = False
    """So many letters are held here already that this one must wait elsewhere."""


Outcome = Done | Failed | Refused | TooEarly


class Refuse(Exception):
    """Raised by a handler that will never take this letter: `raise Refuse("amount must be positive")`."""


class NotYet(Exception):
    """Raised by a handler for which it is too early: `raise NotYet(until=order.due)`, or `NotYet("5m")`."""

    def __init__(
        self, wait: str | timedelta | None = None, *, until: datetime | None = None
    ) -> None:
        super().__init__(f"not before {until or wait}")
        self.wait, self.until = parse(wait) if isinstance(wait, str) else wait, until

    def from_now(self, now: datetime) -> timedelta:
        """How long to wait, seen from now."""
        if self.until is not None:
            aware = self.until if self.until.tzinfo is not None else self.until.replace(tzinfo=UTC)
            return max(aware - now, timedelta())
        return self.wait or timedelta()


class RetryIn(Exception):
    """Raised by a handler that failed and knows when to try again: `raise RetryIn("5m")`."""

    def __init__(self, wait: str | timedelta, error: str = "") -> None:
        self.wait = parse(wait) if isinstance(wait, str) else wait
        super().__init__(error or f"asked to be retried in {say(self.wait)}")


def outcome_of(error: BaseException | None, now: datetime) -> Outcome:
    """What an exception, or none, says about the delivery."""
    match error:
        case None:
            return Done()
        case NotYet():
            return TooEarly(error.from_now(now))
        case Refuse():
            return Refused(_words(error), kind=type(error).__name__)
        case RetryIn():
            return Failed(_words(error), kind=type(error).__name__, wish=error.wait)
        case _:
            return Failed(_words(error), kind=type(error).__name__)


def _words(error: BaseException) -> str:
    """What an exception says of itself; a stranger's may not even be able to."""
    try:
        return str(error) or repr(error)
    except Exception:  # noqa: BLE001  # whatever its own code raises
        return f"{type(error).__name__}, which cannot be told"
