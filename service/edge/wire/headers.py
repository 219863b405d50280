"""Header tables, walked once: what matters is decoded, what travels on is cut out as bytes.

The walk takes the short way for tables as nearly all are. Where anything is odd, the tolerant decoder
of the FastStream lane says what, so that both lanes find the same fault in the same letter.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

from service.core.marks import is_dropped
from service.edge.fields import FIXED, LENGTH, Unreadable, read_sound, value_at, without
from service.edge.tolerance import Headers

TEXT, TABLE, COUNTED = b"S"[0], b"F"[0], frozenset(b"SxAF")
FALLIBLE = frozenset(b"TAF")
"""Kinds of values that may be written so that nobody can read them."""
SIZES = {kind[0]: size for kind, size in FIXED.items()}
FAR = 0xFFFF_FFFF
"""A timestamp up to here is a moment that any calendar knows."""
SMALL = 1024
HISTORY = "x-death"
NAMES = 4096

Walked = tuple[Mapping[str, object], bytes, bytes, str]
"""The headers that are ours or the broker's, decoded; the bytes of all others; the broker's history as
bytes, where it could be read; what is wrong."""


class Odd(Exception):
    """Not a table for the short way."""


def walk(table: bytes, longest: int) -> Walked:
    """Walk a table's content once."""
    if len(table) <= longest:
        try:
            return _short_way(table)
        except (Odd, IndexError, struct.error, UnicodeDecodeError, Unreadable):
            pass
    return _long_way(table, longest)


def _short_way(table: bytes) -> Walked:
    known: dict[str, object] = {}
    kept: list[bytes] = []
    at = start = 0
    end, history = len(table), b""
    while at < end:
        value = at + 1 + table[at]
        kind = table[value]
        if kind == TEXT or kind in COUNTED:
            stop: int = value + 5 + LENGTH.unpack_from(table, value + 1)[0]
        else:
            stop = value + 1 + SIZES.get(kind, end)
        if stop > end:
            raise Odd
        name = _dropped(table[at + 1 : value])
        if name:
            known[name] = _decoded(table, value, stop)
            if name == HISTORY:
                history = table[value:stop]
            kept.append(table[start:at])
            start = stop
        elif kind in FALLIBLE:
            _decoded(table, value, stop)
        at = stop
    return known, b"".join(kept) + table[start:] if kept else table, history, ""


def _long_way(table: bytes, longest: int) -> Walked:
    headers = Headers(table, longest)
    try:
        kept = without(table, lambda name: is_dropped(name.decode("utf-8", "surrogateescape")))
    except (Unreadable, IndexError):
        kept = b""
    return headers, kept, b"", headers.fault


@lru_cache(maxsize=NAMES)
def _dropped(name: bytes) -> str:
    """The name of a header that does not travel on; empty for all others."""
    text = name.decode()
    return text if is_dropped(text) else ""


def _decoded(table: bytes, value: int, stop: int) -> object:
    """A field's value. Texts go the short way; what the broker writes is the same for many letters."""
    if table[value] == TEXT:
        return _text(table[value + 5 : stop])
    field = table[value:stop]
    return _remembered(field) if len(field) <= SMALL else value_at(field, 0, len(field))


@lru_cache(maxsize=1024)
def _remembered(field: bytes) -> object:
    """The broker's history is a list of tables, mostly of one: that has a short way too."""
    try:
        return _tables(field) if field[:1] == b"A" else value_at(field, 0, len(field))
    except (Odd, IndexError, UnicodeDecodeError, struct.error):
        return value_at(field, 0, len(field))


def _tables(field: bytes) -> list[object]:
    found: list[object] = []
    at, end = 5, len(field)
    while at < end:
        if field[at] != TABLE:
            raise Odd
        start = at + 5
        at = start + LENGTH.unpack_from(field, at + 1)[0]
        if at > end:
            raise Odd
        found.append(read_sound(field, start, at, depth=2))
    return found


def _text(data: bytes) -> object:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return bytearray(data)
