"""A letter as a lane carries it: the body, the headers and the properties, none of them opened."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from service.core.marks import DROPPED, KDLQ, MarkValue, is_dropped
from service.edge.fields import LENGTH, Unreadable, WireTime, encode_marks, short_text, without
from service.edge.tolerance import Headers, plain_table


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent again: body and properties as they came, headers as they came."""

    body: bytes
    headers: Mapping[str, object]
    properties: Mapping[str, object]


def _octet(number: int) -> bytes:
    return bytes((number & 0xFF,))


def wire_time(moment: datetime) -> bytes:
    """A timestamp, as it was written where it came from the wire."""
    return struct.pack(
        ">Q", moment.wire if isinstance(moment, WireTime) else int(moment.timestamp())
    )


# Every property a sender may set, with the bit that announces it, in the order of the wire; but for
# `expiration` (it would cut our wait short), `user_id` (the broker compares it with our own name and
# closes the channel) and `cluster_id` (deprecated). The headers stand between the two tables.
Field = tuple[str, int, Callable[[Any], bytes]]
BEFORE: tuple[Field, ...] = (
    ("content_type", 0x8000, short_text),
    ("content_encoding", 0x4000, short_text),
)
AFTER: tuple[Field, ...] = (
    ("priority", 0x0800, _octet),
    ("correlation_id", 0x0400, short_text),
    ("reply_to", 0x0200, short_text),
    ("message_id", 0x0080, short_text),
    ("timestamp", 0x0040, wire_time),
    ("type", 0x0020, short_text),
    ("app_id", 0x0008, short_text),
)
HEADERS, MODE, PERSISTENT = 0x2000, 0x1000, b"\x02"
KEPT = tuple(name for name, _, _ in (*BEFORE, *AFTER))


def properties_of(letter: Letter, marks: Mapping[str, MarkValue], room: int) -> bytes:
    """The properties ready for the wire: as they came, but persistent, and the headers dressed."""
    bits, before = _encode(BEFORE, letter.properties)
    more, after = _encode(AFTER, letter.properties)
    table = dress(letter.headers, marks, room - len(before) - len(after) - 32)
    flags = (bits | more | HEADERS | MODE).to_bytes(2, "big")
    return b"".join((flags, before, LENGTH.pack(len(table)), table, PERSISTENT, after))


def dress(headers: Mapping[str, object], marks: Mapping[str, MarkValue], room: int) -> bytes:
    """The original's headers less what never travels on, plus our marks, within one frame."""
    stamped = encode_marks(marks)
    original = headers.raw if isinstance(headers, Headers) else plain_table(dict(headers))[4:]
    try:
        kept = without(original, _dropped_for(marks))
    except (Unreadable, IndexError):
        kept = b""
    if len(kept) + len(stamped) <= room:
        return kept + stamped
    return encode_marks({**marks, DROPPED: len(original)})


def _dropped_for(marks: Mapping[str, MarkValue]) -> Callable[[bytes], bool]:
    """Which of the original's headers stay behind: KDLQ's only where these marks replace them."""
    if KDLQ.isdisjoint(marks):
        return _is_dropped
    replaced = frozenset(name.encode() for name in KDLQ.intersection(marks))
    return lambda name: name in replaced or _is_dropped(name)


@lru_cache(maxsize=4096)
def _is_dropped(name: bytes) -> bool:
    return is_dropped(name.decode("utf-8", "surrogateescape"))


def _encode(fields: tuple[Field, ...], properties: Mapping[str, object]) -> tuple[int, bytes]:
    bits, encoded = 0, b""
    for name, bit, encode in fields:
        if name in properties:
            bits |= bit
            encoded += encode(properties[name])
    return bits, encoded
