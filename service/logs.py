"""Log lines: for people on a terminal, JSON elsewhere; values cut to size, control characters escaped."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

import stamina.instrumentation
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LONGEST = 256
ENCODER = json.JSONEncoder(default=repr)


def configure(level: str, form: str) -> None:
    """Set up structlog for the process."""
    people = form == "console" or (form == "auto" and sys.stderr.isatty())
    last: Processor = (
        structlog.dev.ConsoleRenderer()
        if people
        else structlog.processors.JSONRenderer(serializer=_json)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            stamp_time,
            clean,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    stamina.instrumentation.set_on_retry_hooks([])  # the post says it once, not for every letter
    # They tell every lost connection several times, with tracebacks; we tell it once, in a sentence.
    for talkative in ("aio_pika", "aiormq"):
        logging.getLogger(talkative).setLevel(
            logging.DEBUG if level == "debug" else logging.CRITICAL
        )


def stamp_time(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """When, in UTC."""
    event["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return event


def clean(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Names and errors come from strangers: no line breaks, no endless values."""
    for key, value in event.items():
        if isinstance(value, str) and (len(value) > LONGEST or not value.isprintable()):
            event[key] = _plain(value)
    return event


def _json(event: EventDict, **_options: object) -> str:
    """One encoder for all lines: the standard library would make one for each."""
    return ENCODER.encode(event)


def _plain(text: str) -> str:
    shown = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
