"""AMQP field tables: walked field by field, decoded tolerantly, and written again byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from service.core import marks as names
from service.core.marks import MarkValue

DEEPEST = 32
FIXED = {b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"u": 2, b"I": 4, b"i": 4, b"f": 4}
FIXED |= {b"l": 8, b"L": 8, b"d": 8, b"T": 8, b"D": 5, b"V": 0}
COUNTED = frozenset((b"S", b"A", b"F", b"x"))
NUMBERS = {b"b": ">b", b"B": ">B", b"s": ">h", b"u": ">H", b"I": ">i", b"i": ">I"}
NUMBERS |= {b"l": ">q", b"L": ">q", b"f": ">f", b"d": ">d"}
UNPACKERS = {kind: struct.Struct(form).unpack_from for kind, form in NUMBERS.items()}
REPEATED = frozenset((names.RETRY_COUNT, names.ORIGINAL_EXCHANGE, names.ORIGINAL_ROUTING_KEY))
REPEATED |= {names.ORIGINAL_QUEUE, names.FLOW, names.FIRST_FAILURE, names.ERROR, names.ERROR_TYPE}
LENGTH = struct.Struct(">I")
TEXT_OCTET = b"S"[0]
TEXT, NARROW, WIDE = struct.Struct(">cI"), struct.Struct(">ci"), struct.Struct(">cq")


class Unreadable(Exception):
    """Bytes that are no field table; says where."""


class WireTime(datetime):
    """A timestamp that keeps the number it was written as: some senders write milliseconds."""

    wire: int

    @staticmethod
    def of(wire: int) -> WireTime:
        """The moment, as near as a datetime can say it."""
        try:
            near = datetime.fromtimestamp(wire if wire <= 0xFFFFFFFF else wire / 1000, tz=UTC)
        except (ValueError, OverflowError, OSError):
            near = datetime.max.replace(tzinfo=UTC)
        moment = WireTime.combine(near.date(), near.timetz())
        moment.wire = wire
        return moment

    @property
    def is_odd(self) -> bool:
        """No datetime can say it."""
        return self.year == datetime.max.year


def walk(table: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    """The top-level fields of a table's content: name, start of the field, of its value, its end."""
    at, end = 0, len(table)
    while at < end:
        value = at + 1 + table[at]
        stop = _end_of_value(table, value, end)
        yield table[at + 1 : value], at, value, stop
        at = stop


def decode_table(table: bytes) -> tuple[dict[str, object], str]:
    """All that can be read of a table, and the first thing that could not ("" when all could)."""
    try:
        return read_sound(table, 0, len(table), 0), ""
    except (Unreadable, IndexError, UnicodeDecodeError, struct.error):
        return _salvage(table)  # once, at the top: at every level it would double each time


def read_sound(data: bytes, at: int, end: int, depth: int) -> dict[str, object]:
    """The table that stands here; raises at the first thing that cannot be read."""
    read: dict[str, object] = {}
    while at < end:
        value = at + 1 + data[at]
        if data[value] == TEXT_OCTET:
            start = value + 5
            stop: int = start + LENGTH.unpack_from(data, value + 1)[0]
            if stop > end:
                raise Unreadable("a field longer than its table")
            try:
                read[data[at + 1 : value].decode()] = data[start:stop].decode()
            except UnicodeDecodeError:
                read[data[at + 1 : value].decode()] = bytearray(data[start:stop])
        else:
            stop = _end_of_value(data, value, end)
            read[data[at + 1 : value].decode()] = value_at(data, value, stop, depth)
        at = stop
    return read


def _salvage(table: bytes) -> tuple[dict[str, object], str]:
    read: dict[str, object] = {}
    fault = ""
    try:
        for name, _, value, stop in walk(table):
            try:
                read[name.decode()] = value_at(table, value, stop)
            except (Unreadable, UnicodeDecodeError, struct.error) as problem:
                fault = fault or f"header {_shown(name)} cannot be read: {_why(problem)}"
    except (Unreadable, IndexError, struct.error) as problem:
        fault = fault or f"the header table cannot be read: {_why(problem)}"
    return read, fault


def decode_only(table: bytes, wanted: Callable[[str], bool], longest: int) -> dict[str, object]:
    """What can be read of these fields, as far as each is small; the others are not looked at."""
    read: dict[str, object] = {}
    with suppress(Unreadable, IndexError, struct.error):
        for name, _, value, stop in walk(table):
            known = name.decode("utf-8", "replace")
            if stop - value <= longest and wanted(known):
                with suppress(Unreadable, struct.error):
                    read[known] = value_at(table, value, stop, 0)
    return read


def without(table: bytes, dropped: Callable[[bytes], bool]) -> bytes:
    """The same table less the fields of these names, every other byte as it came."""
    kept, start = [], 0
    for name, at, _, stop in walk(table):
        if dropped(name):
            kept.append(table[start:at])
            start = stop
    return b"".join(kept) + table[start:] if kept else table


def find_text(table: bytes, name: str) -> bytes | None:
    """The bytes of one top-level text, without decoding any other field; None where there is none."""
    wanted = name.encode()
    for field, _, value, stop in walk(table):
        if field == wanted and table[value : value + 1] == b"S":
            return table[value + 5 : stop]
    return None


def encode_marks(marks: Mapping[str, MarkValue]) -> bytes:
    """Marks as fields; numbers are as wide whatever their value, so that marks do not grow."""
    return b"".join(
        [
            _repeated(name, value) if name in REPEATED else _name(name) + _encode(value)
            for name, value in marks.items()
        ]
    )


@lru_cache(maxsize=256)
def _name(name: str) -> bytes:
    """The names of marks are few, and the same for every letter."""
    return short_text(name)


@lru_cache(maxsize=4096)
def _repeated(name: str, value: MarkValue) -> bytes:
    """Where letters come from and why they failed, texts and numbers all, is the same for many."""
    return _name(name) + _encode(value)


def short_text(text: str) -> bytes:
    """An AMQP short string; text that was no UTF-8 becomes the bytes it was."""
    data = wire_text(text)
    if len(data) > 255:
        raise ValueError(f"an AMQP name holds 255 bytes, this one has {len(data)}: {text[:64]}…")
    return bytes((len(data),)) + data


def wire_text(text: str) -> bytes:
    """Text as bytes, never an error."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _end_of_value(table: bytes, at: int, end: int) -> int:
    kind = table[at : at + 1]
    if kind in COUNTED and at + 5 <= end:
        stop: int = at + 5 + LENGTH.unpack_from(table, at + 1)[0]
    elif (size := FIXED.get(kind)) is not None:
        stop = at + 1 + size
    else:
        raise Unreadable(f"unknown field type {kind!r}" if kind else "it ends too soon")
    if stop > end:
        raise Unreadable("a field longer than its table")
    return stop


def value_at(table: bytes, at: int, stop: int, depth: int = 0) -> object:
    """The value that stands here, its type first; Unreadable where there is none."""
    kind = table[at : at + 1]
    if (unpack := UNPACKERS.get(kind)) is not None:
        return unpack(table, at + 1)[0]
    match kind:
        case b"S":
            return _text(table[at + 5 : stop])
        case b"t":
            return table[at + 1] != 0
        case b"V":
            return None
        case b"T":
            return _moment(
                LENGTH.unpack_from(table, at + 1)[0] << 32 | LENGTH.unpack_from(table, at + 5)[0]
            )
        case b"D":
            return Decimal(struct.unpack_from(">i", table, at + 2)[0]).scaleb(-table[at + 1])
        case b"x":
            return bytearray(table[at + 5 : stop])
        case _:
            return _nested(kind, table[at + 5 : stop], depth + 1)


def _nested(kind: bytes, content: bytes, depth: int) -> object:
    if depth > DEEPEST:
        raise Unreadable(f"nested more than {DEEPEST} deep")
    if kind == b"F":
        try:
            return read_sound(content, 0, len(content), depth)
        except UnicodeDecodeError:
            raise Unreadable("a name in it is not UTF-8") from None
        except (IndexError, struct.error) as problem:
            raise Unreadable(_why(problem)) from None
    items, at = [], 0
    while at < len(content):
        stop = _end_of_value(content, at, len(content))
        items.append(value_at(content, at, stop, depth))
        at = stop
    return items


def _text(data: bytes) -> object:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return bytearray(data)


def _moment(wire: int) -> WireTime:
    moment = WireTime.of(wire)
    if moment.is_odd:
        raise Unreadable(f"timestamp {wire} is past the year 9999")
    return moment


def _encode(value: MarkValue) -> bytes:
    if isinstance(value, str):
        data = wire_text(value)
        return TEXT.pack(b"S", len(data)) + data
    if isinstance(value, int):
        return NARROW.pack(b"I", value) if -(2**31) <= value < 2**31 else WIDE.pack(b"l", value)
    return _counts(tuple(value.items()))


@lru_cache(maxsize=256)
def _counts(counts: tuple[tuple[str, int], ...]) -> bytes:
    content = b"".join([short_text(name) + _encode(count) for name, count in counts])
    return b"F" + LENGTH.pack(len(content)) + content


def _shown(name: bytes) -> str:
    return repr(name[:64].decode("utf-8", "backslashreplace"))


def _why(problem: Exception) -> str:
    match problem:
        case UnicodeDecodeError():
            return "its name is not UTF-8"
        case Unreadable():
            return str(problem)
        case _:
            return "it ends too soon"
