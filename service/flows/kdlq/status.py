"""What a KDLQ handler says of a message, what became of it, and what both mean for a delivery."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import assert_never

from service.core.outcome import Done, Failed, Outcome, Refuse, Refused, outcome_of
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict


class Status(StrEnum):
    """What a handler returns; `None` is OK."""

    OK = "ok"
    MUST_BE_REDELIVERED = "must_be_redelivered"
    ERROR = "error"


class Result(StrEnum):
    """What became of a message."""

    OK = "ok"
    REDELIVERED = "redelivered"
    KILLED = "killed"
    """Sent to the DLQ."""
    SKIPPED = "skipped"
    """Its kills are spent: acknowledged, and gone but for its trace."""


class OnException(StrEnum):
    """What any exception but MustBeRedelivered means."""

    KILL = "kill"
    REDELIVER = "redeliver"


class MustBeRedelivered(Exception):
    """Raised by a handler for a message that may work later: `raise MustBeRedelivered("no stock yet")`."""


class KDLQError(Exception):
    """The broker did not take a copy: the message is not acknowledged, and comes again."""


def returned(status: object) -> Outcome:
    """What a handler's return value says; one that says nothing is no success."""
    match status:
        case None | Status.OK:
            return Done()
        case Status.MUST_BE_REDELIVERED:
            return Failed("the handler returned MUST_BE_REDELIVERED", kind="MUST_BE_REDELIVERED")
        case Status.ERROR:
            return Refused("the handler returned ERROR", kind="ERROR")
        case _:
            kind = type(status).__name__
            return Refused(f"the handler returned a {kind}, not a Status or None", kind=kind)


def raised(error: Exception, on_exception: OnException, now: datetime) -> Outcome:
    """What a handler's exception says. One that refuses for good is believed in any case."""
    match outcome_of(error, now):
        case Failed(words) | Refused(words):
            said = words
        case _:
            said = str(error)
    again = isinstance(error, MustBeRedelivered) or (
        on_exception is OnException.REDELIVER and not isinstance(error, Refuse)
    )
    kind = type(error).__name__
    return Failed(said, kind=kind) if again else Refused(said, kind=kind)


def result_of(verdict: Verdict) -> Result:
    """A verdict in the words of the document: what happened, not what was tried."""
    match verdict:
        case Accept():
            return Result.OK
        case Retry() | Requeue():
            return Result.REDELIVERED
        case Bury():
            return Result.KILLED
        case Discard():
            return Result.SKIPPED
        case never:
            assert_never(never)
