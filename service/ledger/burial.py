"""A burial: one dead letter as it was taken from its queue, with what was read out of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from service.core.fingerprint import Cause


@dataclass(frozen=True, slots=True)
class Sent:
    """The replay that had sent the letter: a job, the letter's position in it, and the letter's id."""

    replay: str
    position: int
    letter: str


class Burial(NamedTuple):
    """Bytes are the truth; texts are clean already, and bounded.

    In the order in which it is written: first what is the letter's own, from `flow` on what letters
    that failed alike have in common, and last what is not written.
    """

    id: str
    letter: str
    error: str
    reason: str
    facts: str
    """JSON: `{"headers": {…}, "properties": {…}}`."""
    digest: bytes
    body: bytes
    headers: bytes
    properties: bytes
    first_failure: datetime
    flow: str
    queue: str
    origin_queue: str
    exchange: str
    routing_key: str
    error_type: str
    place: str
    content_type: str
    retries: int
    cause: Cause
    discarded: bool = False
    """Only to be recorded: it was dropped on purpose."""
    redelivered: bool = False
    """The broker gave it out before: it may be a copy that we hold already."""
    sent: Sent | None = None
    """A replay of ours sent it, by its signed mark."""
