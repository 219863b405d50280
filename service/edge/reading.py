"""A FastStream delivery → the facts about it; nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from aio_pika.abc import AbstractIncomingMessage
from faststream.rabbit import RabbitMessage

from service.core.delivery import Envelope
from service.core.outcome import Refused
from service.core.verdict import Why
from service.edge.fields import WireTime
from service.edge.letter import KEPT, Letter
from service.edge.tolerance import DEFAULT_LONGEST, Headers

NAMES = (
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "message_id",
    "type",
    "app_id",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a letter may weigh before it goes straight to people."""

    max_body: int
    max_headers: int = DEFAULT_LONGEST


async def unopened(message: RabbitMessage) -> RabbitMessage:
    """A decoder that opens nothing: the handler takes the message, whatever its body is."""
    return message


def letter_of(message: AbstractIncomingMessage) -> Letter:
    """The letter, ready to be sent again. A property that is empty, or a priority of 0, aio-pika cannot
    tell from one that is absent: it is left out, which means the same to every queue."""
    properties = {name: value for name in KEPT if (value := getattr(message, name))}
    return Letter(message.body, message.headers, properties)


def envelope_of(message: AbstractIncomingMessage, at: datetime) -> Envelope:
    """What the message says of itself. FastStream's wrapper invents ids: the raw message does not."""
    given = message.message_id or None
    where = message.exchange or "", message.routing_key or "", bool(message.redelivered)
    return Envelope(
        given, message.headers, given or uuid4().hex, at, *where, message.body, _place(message)
    )


def fault_in(message: AbstractIncomingMessage, limits: Limits) -> Refused | None:
    """Why no attempt should be made with this letter: it is absurd, or too large."""
    if heavy := too_large(message.body, limits):
        return heavy
    if fault := header_fault(message.headers):
        return Refused(fault, Why.UNREADABLE)
    if isinstance(message.timestamp, WireTime) and message.timestamp.is_odd:
        return Refused(
            f"the timestamp {message.timestamp.wire} is past the year 9999", Why.UNREADABLE
        )
    return next((not_text(name) for name in NAMES if not _is_text(getattr(message, name))), None)


def too_large(body: bytes, limits: Limits) -> Refused | None:
    """What is said of a body that is larger than we carry."""
    if len(body) <= limits.max_body:
        return None
    says = f"a body of {len(body)} bytes is over the limit of {limits.max_body}"
    return Refused(says, Why.TOO_LARGE)


def header_fault(headers: Mapping[str, object]) -> str:
    """What could not be read in a header table; empty where all could."""
    return headers.fault if isinstance(headers, Headers) else ""


def _place(message: AbstractIncomingMessage) -> dict[str, int]:
    """All that RabbitMQ knows is when, by the sender; a moment that no calendar has is none."""
    moment = message.timestamp
    if moment is None or (isinstance(moment, WireTime) and moment.is_odd):
        return {}
    return {"timestamp": int(moment.timestamp()) * 1000}


def not_text(name: str) -> Refused:
    """What is said of a property that is no text."""
    return Refused(f"the property {name} is not UTF-8", Why.UNREADABLE)


def _is_text(value: str | None) -> bool:
    return value is None or value.isascii() or not any("\udc80" <= c <= "\udcff" for c in value)
