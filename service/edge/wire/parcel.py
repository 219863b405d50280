"""A parcel: a letter as it will be sent again, all of it bytes; and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from service.core.marks import DROPPED, MarkValue
from service.core.outcome import Refused
from service.core.verdict import Why
from service.edge.fields import LENGTH, WireTime, encode_marks
from service.edge.letter import HEADERS, MODE, PERSISTENT
from service.edge.reading import not_text
from service.edge.wire.delivered import Delivered
from service.edge.wire.headers import FAR, walk

# The properties that are texts, with the bit that announces each.
TEXTS = {0x8000: "content_type", 0x4000: "content_encoding", 0x0400: "correlation_id"}
TEXTS |= {0x0200: "reply_to", 0x0100: "expiration", 0x0080: "message_id", 0x0020: "type"}
TEXTS |= {0x0010: "user_id", 0x0008: "app_id", 0x0004: "cluster_id"}
PRIORITY, TIMESTAMP, MESSAGE_ID = 0x0800, 0x0040, 0x0080
WIDTHS = {MODE: 1, PRIORITY: 1, TIMESTAMP: 8}
# `expiration` would cut our wait short, `user_id` the broker compares with our own name and closes the
# channel, `cluster_id` is deprecated; of the delivery mode we make our own.
LEFT_OUT = 0x0100 | 0x0010 | 0x0004 | 0x0003 | MODE


class Parcel:
    """Properties, headers and body; nothing of them is opened but the marks and the broker's history."""

    __slots__ = (
        "after",
        "before",
        "body",
        "fault",
        "flags",
        "headers",
        "history",
        "kept",
        "message_id",
        "size",
    )

    def __init__(self, delivered: Delivered, longest: int) -> None:
        self.body, properties = delivered.body, delivered.properties
        self.flags = properties[0] << 8 | properties[1]
        self.message_id = ""
        self.fault: Refused | None = None
        table, after = 2, 0
        parts: list[bytes] = []
        size = 0
        at = 2
        for bit, width, text, is_kept in _layout(self.flags):
            if bit == HEADERS:
                table, size = at + 4, LENGTH.unpack_from(properties, at)[0]
                at = table + size
                continue
            stop = at + (width or 1 + properties[at])
            if text:
                self._look_at(bit, text, properties[at + 1 : stop])
            elif bit == TIMESTAMP:
                self._look_at_time(int.from_bytes(properties[at:stop], "big"))
            if is_kept:
                parts.append(properties[at:stop])
                after += bit < HEADERS
            at = stop
        split = len(parts) - after
        self.before, self.after = b"".join(parts[:split]), b"".join(parts[split:])
        self.size = size
        raw = properties[table : table + size]
        self.headers, self.kept, self.history, fault = walk(raw, longest)
        if fault:
            self.fault = Refused(fault, Why.UNREADABLE)

    def dressed(self, marks: Mapping[str, MarkValue], room: int) -> bytes:
        """The properties ready for the wire: as they came, but persistent, and with our marks."""
        stamped = encode_marks(marks)
        left = room - len(self.before) - len(self.after) - 32
        if len(self.kept) + len(stamped) <= left:
            table = self.kept + stamped
        else:
            table = encode_marks({**marks, DROPPED: self.size})
        flags = (self.flags & ~LEFT_OUT | HEADERS | MODE).to_bytes(2, "big")
        return b"".join(
            (flags, self.before, LENGTH.pack(len(table)), table, PERSISTENT, self.after)
        )

    def _look_at(self, bit: int, name: str, text: bytes) -> None:
        if bit == MESSAGE_ID:
            self.message_id = text.decode("utf-8", "surrogateescape")
        if text.isascii() or self.fault is not None or bit & LEFT_OUT:
            return
        try:
            text.decode()
        except UnicodeDecodeError:
            self.fault = not_text(name)

    def _look_at_time(self, wire: int) -> None:
        if wire > FAR and WireTime.of(wire).is_odd:
            self.fault = Refused(f"the timestamp {wire} is past the year 9999", Why.UNREADABLE)


@lru_cache(maxsize=1024)
def _layout(flags: int) -> tuple[tuple[int, int, str, bool], ...]:
    """Which properties follow these flags, in order: bit, width, name if it is a text, whether it stays."""
    bits = [bit for bit in (1 << n for n in range(15, 1, -1)) if flags & bit]
    return tuple((b, WIDTHS.get(b, 0), TEXTS.get(b, ""), not b & LEFT_OUT) for b in bits)
