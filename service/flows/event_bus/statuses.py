"""HTTP status → outcome: the document's table, and what else an answer may say."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import Enum
from http import HTTPStatus
from typing import assert_never

from service.core.outcome import Done, Failed, Outcome, Refused, TooEarly

LONGEST_WAIT = timedelta(seconds=60)
LONGEST_EXCERPT = 200
DELAY_FIELD = "processAfterDelayMs"


class Meaning(Enum):
    """What a status says about a letter."""

    DELIVERED = "delivered"
    TOO_EARLY = "too early"
    FAILED = "failed"
    CLIENT_ERROR = "client error"


# The first row that has the status counts; without one it has failed. No redirect is followed: an address
# that moved is a fault of the settings, and no letter goes where a stranger's answer points to.
TABLE: tuple[tuple[range, Meaning], ...] = (
    (range(200, 300), Meaning.DELIVERED),
    (range(425, 426), Meaning.TOO_EARLY),
    (range(409, 410), Meaning.FAILED),
    (range(429, 430), Meaning.FAILED),
    (range(400, 500), Meaning.CLIENT_ERROR),
    (range(500, 600), Meaning.FAILED),
)
PAUSING = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint answered; of the body only the beginning is read."""

    status: int
    retry_after: str = ""
    body: bytes = b""


def outcome_of(
    answer: Answer, now: datetime, usual_wait: timedelta, *, refuse_client_errors: bool = False
) -> Outcome:
    """How the delivery ended."""
    match meaning_of(answer.status):
        case Meaning.DELIVERED:
            return Done()
        case Meaning.TOO_EARLY:
            return TooEarly(asked_wait(answer, now) or usual_wait)
        case Meaning.CLIENT_ERROR if refuse_client_errors:
            return Refused(in_words(answer), kind=_name(answer), status=answer.status)
        case Meaning.FAILED | Meaning.CLIENT_ERROR:
            return Failed(in_words(answer), kind=_name(answer), status=answer.status)
        case never:
            assert_never(never)


def pause_of(answer: Answer, now: datetime) -> timedelta | None:
    """How long the service wants no deliveries at all, if it says so."""
    return _retry_after(answer, now) if answer.status in PAUSING else None


def meaning_of(status: int) -> Meaning:
    """The row of the table."""
    return next((meaning for row, meaning in TABLE if status in row), Meaning.FAILED)


def asked_wait(answer: Answer, now: datetime) -> timedelta | None:
    """How long to wait, by the answer's body (`{"processAfterDelayMs": 1500}`) or its `Retry-After`."""
    wait = _delay_in(answer.body)
    return _retry_after(answer, now) if wait is None else wait


def in_words(answer: Answer) -> str:
    """`HTTP 503 Service Unavailable: the first line of the body`."""
    excerpt = _excerpt(answer.body)
    return f"HTTP {_name(answer)}{': ' if excerpt else ''}{excerpt}"


def _name(answer: Answer) -> str:
    try:
        return f"{answer.status} {HTTPStatus(answer.status).phrase}"
    except ValueError:
        return str(answer.status)


def _excerpt(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    line = "".join(c for c in text.partition("\n")[0] if c.isprintable())
    return line if len(line) <= LONGEST_EXCERPT else f"{line[:LONGEST_EXCERPT]}…"


def _delay_in(body: bytes) -> timedelta | None:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    delay = said.get(DELAY_FIELD) if isinstance(said, dict) else None
    if not isinstance(delay, int | float) or isinstance(delay, bool):
        return None
    try:
        return _bounded(delay / 1000) if math.isfinite(delay) else None
    except OverflowError:
        return LONGEST_WAIT


def _retry_after(answer: Answer, now: datetime) -> timedelta | None:
    """Seconds, or a date."""
    said = answer.retry_after.strip()
    if said.isascii() and said.isdigit():
        return _bounded(float(said[:9]))
    try:
        moment = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return _bounded((moment - now).total_seconds())


def _bounded(seconds: float) -> timedelta:
    return timedelta(seconds=min(max(seconds, 0.0), LONGEST_WAIT.total_seconds()))
