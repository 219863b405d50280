"""The named poisons: letters that RabbitMQ accepts and that have stopped services like this one."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.kit.wire import counted, field, properties

FRAME = 131_072
MAX_BODY = 64 * 1024


@dataclass(frozen=True)
class Poison:
    """A letter, the key it is sent with, and what is said of it in the end."""

    properties: bytes
    reason: str
    body: bytes = b"poison"
    key: str = "order.created"  # a route with retries left: it must not need them
    kept: bytes = b""  # what must still be in its headers, byte for byte


def nested(kind: bytes, depth: int) -> bytes:
    """A field whose value is so many tables, or arrays, in each other."""
    name = b"\x01n" if kind == b"F" else b""
    value = kind + counted(b"")
    for _ in range(depth):
        value = kind + counted(name + value)
    return b"\x04deep" + value


def death(queue: str, reason: str, count: bytes) -> bytes:
    """An entry of `x-death` as a stranger may write it."""
    content = (
        field("queue", b"S", counted(queue.encode()))
        + field("reason", b"S", counted(reason.encode()))
        + field("exchange", b"S", counted(b"shop"))
        + field("routing-keys", b"A", counted(b"S" + counted(b"order.created")))
        + field("time", b"T", struct.pack(">Q", 1_700_000_000))
        + b"\x05count"
        + count
    )
    return b"F" + counted(content)


def deaths(*entries: bytes) -> bytes:
    """The header itself."""
    return field("x-death", b"A", counted(b"".join(entries)))


ONE = b"l" + struct.pack(">q", 1)
FAR = struct.pack(">Q", 2**63 - 1)
BAD_NAME = field(b"bad \xff\xfe name", b"t", b"\x01")
BOOLEANS = field("flags", b"A", counted(b"t\x01" * 60_000))
SPENT = "order.spent"  # a route without retries
ONCE = "failed once: rejected by a consumer of orders"

POISONS = {
    "a timestamp past the year 9999 as a header": Poison(
        properties(headers=field("when", b"T", FAR)),
        "header 'when' cannot be read: timestamp 9223372036854775807 is past the year 9999",
        kept=field("when", b"T", FAR),
    ),
    "a timestamp past the year 9999 as the property": Poison(
        properties(timestamp=2**63 - 1), "the timestamp 9223372036854775807 is past the year 9999"
    ),
    "bad UTF-8 in a header name": Poison(
        properties(headers=BAD_NAME), "its name is not UTF-8", kept=BAD_NAME
    ),
    "bad UTF-8 in content_type": Poison(
        properties(content_type=b"\xff\xfe/json"), "the property content_type is not UTF-8"
    ),
    "bad UTF-8 in message_id": Poison(
        properties(message_id=b"\xff\x00\xfe"), "the property message_id is not UTF-8"
    ),
    "tables nested a thousand deep": Poison(
        properties(headers=nested(b"F", 1000)), "nested more than 32 deep", kept=nested(b"F", 1000)
    ),
    "arrays nested a thousand deep": Poison(
        properties(headers=nested(b"A", 1000)), "nested more than 32 deep", kept=nested(b"A", 1000)
    ),
    "a body that is not what it says": Poison(
        properties(content_type=b"application/json", content_encoding=b"gzip"),
        ONCE,
        body=b"\xff{not json",
        key=SPENT,
    ),
    "an empty body": Poison(properties(content_type=b"application/json"), ONCE, b"", SPENT),
    "carbon copies": Poison(
        properties(headers=field("CC", b"A", counted(b"S" + counted(b"retry-queue-1")))),
        ONCE,
        key=SPENT,
    ),
    "headers of 60 000 booleans": Poison(
        properties(headers=BOOLEANS), "bytes are over the limit of 65536", kept=BOOLEANS
    ),
    "headers just under the frame limit": Poison(
        properties(headers=field("pad", b"S", counted(b"x" * (FRAME - 200)))),
        "bytes are over the limit of 65536",
        kept=b"x-dlo-dropped-headers",
    ),
    "a body over the limit": Poison(
        properties(),
        f"a body of {MAX_BODY + 1} bytes is over the limit of {MAX_BODY}",
        b"x" * (MAX_BODY + 1),
    ),
    "five hundred forged deaths": Poison(
        properties(headers=deaths(*[death(f"q{n}", "rejected", ONE) for n in range(500)])),
        ONCE,
        key=SPENT,
    ),
    "forged deaths in our own queues": Poison(
        properties(
            headers=deaths(
                death("retry-queue", "expired", ONE), death("queue.delay.1", "expired", ONE)
            )
        ),
        ONCE,
        key=SPENT,
    ),
}

# On 3.10 these crash the foreign queue that dead-letters them, before we see them: straight to us.
FORGED = {
    "x-death of text": field("x-death", b"S", counted(b"orders")),
    "x-death of numbers": field("x-death", b"A", counted(ONE + ONE)),
    "x-death with a count of text": deaths(
        death("retry-queue", "rejected", b"S" + counted(b"many"))
    ),
    "x-death that names our own queue": deaths(death("queue.delay.1", "expired", ONE)),
    "an empty x-death": deaths(),
    "a death without a queue": deaths(b"F" + counted(field("reason", b"t", b"\x01"))),
}
