"""A burial: one dead letter as it was taken from its queue, with what was read out of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from service.core.fingerprint import Cause


@dataclass(frozen=True, slots=True)
class Sent:
    """The replay that had sent the letter: a job, the letter's position in it, and the letter's id."""

    replay: str
    position: int
    letter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Burial:
    """Bytes are the truth; texts are clean already, and bounded."""

    id: str
    letter: str
    flow: str
    queue: str
    origin_queue: str
    exchange: str
    routing_key: str
    cause: Cause
    error_type: str
    error: str
    place: str
    reason: str
    retries: int
    digest: bytes
    body: bytes
    headers: bytes
    properties: bytes
    facts: str
    """JSON: `{"headers": {…}, "properties": {…}}`."""
    content_type: str
    first_failure: datetime
    redelivered: bool = False
    """The broker gave it out before: it may be a copy that we hold already."""
    discarded: bool = False
    """Only to be recorded: it was dropped on purpose."""
    sent: Sent | None = None
    """A replay of ours sent it, by its signed mark."""
