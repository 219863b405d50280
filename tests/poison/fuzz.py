"""Letters as chance writes them: every field type, bad names, odd properties; RabbitMQ accepts all."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from tests.kit.wire import counted, field, properties

FIXED = {b"t": 1, b"b": 1, b"B": 1, b"s": 2, b"u": 2, b"I": 4, b"i": 4, b"f": 4, b"l": 8, b"d": 8}
FIXED |= {b"T": 8, b"D": 5, b"V": 0}
SIMPLE = tuple(FIXED)
FLOATS = {b"f": ">f", b"d": ">d"}
TEXTS = ("content_type", "content_encoding", "correlation_id", "reply_to", "type", "app_id")
WORDS = (b"x-retry-count", b"x-dlo-id", b"x-original-queue", b"x-dlo-signature", b"x-dlo-deaths")


def letter(chance: Random) -> bytes:
    """The property bytes of one letter."""
    values: dict[str, bytes | int] = {
        name: chance.randbytes(chance.randrange(40)) for name in TEXTS if chance.random() < 0.2
    }
    if chance.random() < 0.3:
        values["priority"] = chance.randrange(256)
    if chance.random() < 0.2:
        values["timestamp"] = chance.getrandbits(chance.choice((31, 42, 64)))
    if chance.random() < 0.5:
        values["message_id"] = chance.choice((b"", b"same", chance.randbytes(8), b"\xc3\xa4"))
    if chance.random() < 0.1:
        values["expiration"] = b"%d" % chance.randrange(1, 10**6)
    if chance.random() < 0.9:
        values["headers"] = table(chance, depth=0)
    return properties(delivery_mode=2, **values)


def body(chance: Random, number: int) -> bytes:
    """Its number, then anything."""
    return struct.pack(">I", number) + chance.randbytes(chance.choice((0, 10, 300)))


def table(chance: Random, depth: int) -> bytes:
    """The fields of a table."""
    return b"".join(
        field(name(chance), *value(chance, depth)) for _ in range(chance.randrange(1, 6))
    )


def name(chance: Random) -> bytes:
    """A field's name: ours, a word, or noise."""
    if chance.random() < 0.2:
        return chance.choice(WORDS)
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(12))
    return b"f%d" % chance.randrange(1000)


def value(chance: Random, depth: int) -> tuple[bytes, bytes]:
    """A field's type and content."""
    kinds: tuple[Callable[[Random, int], tuple[bytes, bytes]], ...] = (_fixed, _text, _list, _table)
    return chance.choice(kinds if depth < 4 else kinds[:2])(chance, depth)


def _fixed(chance: Random, _depth: int) -> tuple[bytes, bytes]:
    kind = chance.choice(SIMPLE)
    if kind in FLOATS:  # no NaN, no infinity: RabbitMQ closes the connection over them
        return kind, struct.pack(FLOATS[kind], chance.uniform(-1e30, 1e30))
    return kind, chance.randbytes(FIXED[kind])


def _text(chance: Random, _depth: int) -> tuple[bytes, bytes]:
    text = chance.choice((b"", b"text", "ä€".encode(), chance.randbytes(20), b"\0"))
    return chance.choice((b"S", b"x")), counted(text)


def _list(chance: Random, depth: int) -> tuple[bytes, bytes]:
    items = [b"".join(value(chance, depth + 1)) for _ in range(chance.randrange(4))]
    return b"A", counted(b"".join(items))


def _table(chance: Random, depth: int) -> tuple[bytes, bytes]:
    return b"F", counted(table(chance, depth + 1))
