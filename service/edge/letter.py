"""A letter as a lane carries it: the body, the headers and the properties, none of them opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.core.marks import DROPPED, MarkValue, is_dropped
from service.edge.fields import Unreadable, encode_marks, without
from service.edge.tolerance import Dressed, Headers, plain_table

# Everything a sender may set but `expiration` (it would cut our wait short), `user_id` (the broker
# checks it against our own name and closes the channel) and `cluster_id` (deprecated).
KEPT: tuple[str, ...] = (
    *("content_type", "content_encoding", "priority", "correlation_id", "reply_to"),
    *("message_id", "timestamp", "type", "app_id"),
)


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent again: body and properties as they came, headers as they came."""

    body: bytes
    headers: Mapping[str, object]
    properties: Mapping[str, object]


def dress(headers: Mapping[str, object], marks: Mapping[str, MarkValue], room: int) -> Dressed:
    """The original's headers less what never travels on, plus our marks, within one frame."""
    stamped = encode_marks(marks)
    original = _raw(headers)
    try:
        kept = without(original, is_dropped)
    except (Unreadable, IndexError):
        kept = b""
    if len(kept) + len(stamped) <= room:
        return Dressed(kept + stamped)
    return Dressed(encode_marks({**marks, DROPPED: len(original)}))


def _raw(headers: Mapping[str, object]) -> bytes:
    return headers.raw if isinstance(headers, Headers) else plain_table(dict(headers))[4:]
