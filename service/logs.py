"""Log lines: for people on a terminal, JSON elsewhere; values cut to size, control characters escaped."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii

import stamina.instrumentation
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LONGEST = 256
ENCODER = json.JSONEncoder(default=repr)


def configure(level: str, form: str) -> None:
    """Set up structlog for the process."""
    _form.level = logging.getLevelName(level.upper())
    people = form == "console" or (form == "auto" and sys.stderr.isatty())
    last: Processor = (
        structlog.dev.ConsoleRenderer()
        if people
        else structlog.processors.JSONRenderer(serializer=_json)
    )
    _form.json = not people
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


class Lines:
    """JSON lines of one shape, thousands a second: written by hand, and those of one turn of the loop
    together. `wanted` says whether there is anything to write at all."""

    def __init__(self) -> None:
        self._waiting: list[str] = []

    @property
    def wanted(self) -> bool:
        """Whether lines of this level go out as JSON; on a terminal structlog draws them."""
        return _form.json and _form.level <= logging.INFO

    def write(self, fields: str) -> None:
        """A line, its fields without the braces."""
        self._waiting.append(f'{{{fields}, "level": "info", "timestamp": "{now()}"}}\n')
        if len(self._waiting) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no loop: at once
                self.flush()

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
        sys.stderr.write("".join(waiting))
        sys.stderr.flush()


@dataclass
class _Form:
    json: bool = False
    level: int = logging.INFO


_form = _Form()


def quoted(text: str) -> str:
    """A value for a line written by hand: cut to size, control characters escaped."""
    if len(text) > LONGEST or not text.isprintable():
        text = _plain(text)
    return encode_basestring_ascii(text)


def now() -> str:
    """The moment, in UTC."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def stamp_time(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """When, in UTC."""
    event["timestamp"] = now()
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
