"""Dialects: how other frameworks write down why a letter failed and where; an entry of the table each.

What a header says here labels a letter. Where it may also steer (the queue a replay goes to) is for
the caller to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from service.core import marks
from service.core.cleaning import words
from service.core.frames import LONGEST_TRACE, innermost, root_type
from service.core.history import DEATH_REASONS, LONGEST_NAME

Headers = Mapping[str, object]
FINGERPRINT = "x-dlo-fingerprint"
LONGEST_ERROR = 2000


class Testimony(NamedTuple):
    """What the headers tell of the failure; whatever they do not tell is empty."""

    dialect: str = ""
    error_type: str = ""
    error: str = ""
    place: str = ""
    queue: str = ""
    """Where the letter died."""
    exchange: str = ""
    routing_key: str = ""
    retries: int = 0
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One framework's words: which headers hold what."""

    name: str
    known_by: str
    """The header that shows who is speaking."""
    error_type: str = ""
    error: str = ""
    trace: str = ""
    retries: str = ""
    failed_at: str = ""
    queue: Callable[[Headers, str], str] | None = None
    exchange: str = ""
    routing_key: str = ""

    def hear(self, headers: Headers, dead_queue: str) -> Testimony:
        """What this framework wrote."""
        trace = words(headers.get(self.trace), LONGEST_TRACE) if self.trace else ""
        return Testimony(
            self.name,
            words(headers.get(self.error_type), LONGEST_NAME) or root_type(trace),
            words(headers.get(self.error), LONGEST_ERROR),
            innermost(trace) if trace else "",
            self.queue(headers, dead_queue)[:LONGEST_NAME] if self.queue else "",
            words(headers.get(self.exchange), LONGEST_NAME) if self.exchange else "",
            words(headers.get(self.routing_key), LONGEST_NAME) if self.routing_key else "",
            number(headers.get(self.retries)) if self.retries else 0,
            moment(headers.get(self.failed_at)) if self.failed_at else None,
        )


def _failed_queue(headers: Headers, _dead: str) -> str:
    """`orders`, or `orders@machine` of older transports."""
    return words(headers.get("NServiceBus.FailedQ"), LONGEST_NAME).partition("@")[0]


def _input_address(headers: Headers, dead: str) -> str:
    """`rabbitmq://host/vhost/orders?temporary=true`; where it is missing, `orders_error` tells."""
    address = words(headers.get("MT-Fault-InputAddress"))
    try:
        named = unquote(urlsplit(address).path.rpartition("/")[2])
    except ValueError:
        named = ""
    return named or (dead.removesuffix("_error") if dead.endswith("_error") else "")


def _by_default_exchange(headers: Headers, _dead: str) -> str:
    """Spring writes the address, not the queue; through the default exchange they are the same."""
    if headers.get("x-original-exchange") != "":
        return ""
    return words(headers.get("x-original-routingKey"), LONGEST_NAME)


OURS = Dialect("Dead Letter Office", marks.ERROR, marks.ERROR_TYPE, marks.ERROR)
FRAMEWORKS = (
    Dialect(
        "NServiceBus",
        "NServiceBus.FailedQ",
        "NServiceBus.ExceptionInfo.ExceptionType",
        "NServiceBus.ExceptionInfo.Message",
        "NServiceBus.ExceptionInfo.StackTrace",
        "NServiceBus.DelayedRetries",
        "NServiceBus.TimeOfFailure",
        _failed_queue,
    ),
    Dialect(
        "MassTransit",
        "MT-Fault-Message",
        "MT-Fault-ExceptionType",
        "MT-Fault-Message",
        "MT-Fault-StackTrace",
        "MT-Fault-RetryCount",
        "MT-Fault-Timestamp",
        _input_address,
    ),
    Dialect(
        "Spring AMQP",
        "x-exception-stacktrace",
        error="x-exception-message",
        trace="x-exception-stacktrace",
        queue=_by_default_exchange,
        exchange="x-original-exchange",
        routing_key="x-original-routingKey",
    ),
)
DOCUMENTS = (
    Dialect("event bus", marks.FINAL_ERROR, error=marks.FINAL_ERROR, retries=marks.FINAL_RETRIES),
    Dialect("KDLQ", "KDLQ_Redelivered", retries="KDLQ_Redelivered"),
)
NOTHING = Testimony()
SPOKEN = frozenset(
    {FINGERPRINT, "MT-Fault-InputAddress", "x-original-exchange"}
    | {
        name
        for dialect in (OURS, *FRAMEWORKS, *DOCUMENTS)
        for name in (
            *(dialect.known_by, dialect.error_type, dialect.error, dialect.trace),
            *(dialect.retries, dialect.failed_at, dialect.exchange, dialect.routing_key),
        )
        if name
    }
)
"""The headers that are understood here."""


def testimony(headers: Headers, dead_queue: str) -> Testimony:
    """Who says most: our own desk where it saw an error, then the framework that gave the letter up,
    then our desk again (it saw only that a consumer rejected it), then the documents' own headers."""
    own = headers.get(marks.ERROR_TYPE)
    if marks.ERROR in headers and own and not (isinstance(own, str) and own in DEATH_REASONS):
        return OURS.hear(headers, dead_queue)
    for dialect in (*FRAMEWORKS, OURS, *DOCUMENTS):
        if dialect.known_by in headers:
            return dialect.hear(headers, dead_queue)
    return NOTHING


def number(value: object) -> int:
    """A count in a header, were it written as text; 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return min(max(value, 0), 2**31 - 1)


def moment(value: object) -> datetime | None:
    """A moment in a header: `2026-11-18T03:04:05.678Z`, or NServiceBus's `2026-11-18 03:04:05:678901 Z`."""
    if not isinstance(value, str):
        return None
    text = re.sub(r"(\d\d:\d\d:\d\d):(\d+)", r"\1.\2", value[:40].replace(" Z", "Z"))
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
