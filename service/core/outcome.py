"""How one delivery ended, and the exceptions with which a handler says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from service.core.verdict import Why


@dataclass(frozen=True, slots=True)
class Done:
    """The handler took the letter."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work this time; another attempt may."""

    error: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The letter was understood, or could not be, and no attempt will ever take it."""

    error: str
    why: Why = Why.REFUSED
    kind: str = ""


@dataclass(frozen=True, slots=True)
class TooEarly:
    """Nothing is wrong, it is not time yet: no attempt is spent."""

    wait: timedelta


Outcome = Done | Failed | Refused | TooEarly


class Refuse(Exception):
    """Raised by a handler that will never take this letter: `raise Refuse("amount must be positive")`."""


class NotYet(Exception):
    """Raised by a handler for which it is too early: `raise NotYet(timedelta(seconds=5))`."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"not before {wait} from now")
        self.wait = wait


def outcome_of(error: BaseException | None) -> Outcome:
    """What an exception, or none, says about the delivery."""
    match error:
        case None:
            return Done()
        case NotYet():
            return TooEarly(error.wait)
        case Refuse():
            return Refused(str(error), kind=type(error).__name__)
        case _:
            return Failed(str(error) or repr(error), kind=type(error).__name__)
