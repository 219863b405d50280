"""The properties of a letter as the wire has them: taken apart from the headers, read tolerantly."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from service.edge.fields import LENGTH, WireTime

HEADERS = 0x2000
# Every property with the bit that announces it, in the order of the wire.
NAMES = (
    *(("content_type", 0x8000), ("content_encoding", 0x4000), ("headers", HEADERS)),
    *(("delivery_mode", 0x1000), ("priority", 0x0800), ("correlation_id", 0x0400)),
    *(("reply_to", 0x0200), ("expiration", 0x0100), ("message_id", 0x0080), ("timestamp", 0x0040)),
    *(("type", 0x0020), ("user_id", 0x0010), ("app_id", 0x0008), ("cluster_id", 0x0004)),
)
MOMENT = struct.Struct(">Q")
Reader = Callable[[bytes, int], tuple[object, int]]


class Properties(NamedTuple):
    """What a content header says: the bytes without the header table, the table, and the values."""

    plain: bytes
    table: bytes
    values: dict[str, object]


def open_properties(raw: bytes) -> Properties:
    """Take the properties of a content header apart; what cannot be walked is kept whole."""
    try:
        return _walk(raw)
    except (IndexError, struct.error):
        return Properties(raw, b"", {})


def read_properties(plain: bytes) -> dict[str, object]:
    """The values of properties whose header table was taken out: text as text (bytes that are no
    UTF-8 survive as surrogates), `timestamp` as it was written."""
    return open_properties(plain).values


def _walk(raw: bytes) -> Properties:
    flags = raw[0] << 8 | raw[1]
    values: dict[str, object] = {}
    at, start, stop = 2, 2, 2
    for name, read in _announced(flags):
        if read is None:
            start = at
            stop = at = at + 4 + LENGTH.unpack_from(raw, at)[0]
        else:
            values[name], at = read(raw, at)
    if at > len(raw):
        raise IndexError("it ends too soon")
    if start == stop:
        return Properties(raw, b"", values)
    plain = (flags & ~HEADERS).to_bytes(2, "big") + raw[2:start] + raw[stop:]
    return Properties(plain, raw[start + 4 : stop], values)


@lru_cache(maxsize=256)
def _announced(flags: int) -> tuple[tuple[str, Reader | None], ...]:
    """The properties that stand there, in order; senders set few different ones."""
    return tuple(
        (name, None if bit == HEADERS else READERS.get(name, _text))
        for name, bit in NAMES
        if flags & bit
    )


def _text(raw: bytes, at: int) -> tuple[object, int]:
    stop = at + 1 + raw[at]
    return raw[at + 1 : stop].decode("utf-8", "surrogateescape"), stop


def _octet(raw: bytes, at: int) -> tuple[object, int]:
    return raw[at], at + 1


def _time(raw: bytes, at: int) -> tuple[object, int]:
    return WireTime.of(MOMENT.unpack_from(raw, at)[0]), at + 8


READERS: dict[str, Reader] = {
    "delivery_mode": _octet,
    "priority": _octet,
    "timestamp": _time,
}
