"""An event as a service is handed it, what the service replies, and the door where that happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from service.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """One attempt to hand a letter to a service: the body as it was sent, never opened by us."""

    body: bytes
    message_id: str = ""
    """The producer's own, the same at every attempt; empty where it gave none."""
    retries: int = 0
    exchange: str = ""
    """The exchange the producer published to; a retry does not change it."""
    routing_key: str = ""
    """The routing key the producer used; a retry does not change it."""
    content_type: str = ""
    content_encoding: str = ""
    correlation_id: str = ""
    type: str = ""
    headers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """How the attempt ended, and whether the service wants to be left alone for a while."""

    outcome: Outcome
    pause: timedelta | None = None


Door = Callable[[Event], Awaitable[Reply]]
