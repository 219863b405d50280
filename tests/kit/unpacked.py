"""Property bytes taken apart, by hand and not by the service's own code: what it must leave alone."""

from __future__ import annotations

import struct

from tests.kit.wire import FLAGS

SIZES = {b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"u": 2, b"I": 4, b"i": 4, b"f": 4, b"l": 8, b"L": 8}
SIZES |= {b"d": 8, b"T": 8, b"D": 5, b"V": 0}
WIDTHS = {"delivery_mode": 1, "priority": 1, "timestamp": 8}


def unpacked(properties: bytes) -> dict[str, bytes]:
    """Every property as bytes, by name; `headers` without its length."""
    (flags,), at = struct.unpack_from(">H", properties), 2
    found: dict[str, bytes] = {}
    for name, bit in FLAGS.items():
        if not flags & 1 << bit:
            continue
        if name == "headers":
            start = at + 4
            at = start + struct.unpack_from(">I", properties, at)[0]
        else:
            start, at = at, at + WIDTHS.get(name, 1 + properties[at])
        found[name] = properties[start:at]
    assert at == len(properties)
    return found


def fields(table: bytes) -> list[tuple[bytes, bytes]]:
    """The top-level fields of a table: name, and type with value."""
    found, at = [], 0
    while at < len(table):
        value = at + 1 + table[at]
        kind = table[value : value + 1]
        if kind in b"SAFx":
            stop = value + 5 + struct.unpack_from(">I", table, value + 1)[0]
        else:
            stop = value + 1 + SIZES[kind]
        found.append((table[at + 1 : value], table[value:stop]))
        at = stop
    return found
