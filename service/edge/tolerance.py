"""Tolerant reading, installed into pamqp: no header of a stranger can break the connection.

pamqp raises on fields that RabbitMQ accepts (a timestamp past the year 9999, names that are not
UTF-8, deep nesting); the connection then dies, reconnects to the same message, and dies again.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import datetime

from pamqp import commands, constants, decode, encode, header

from service.core.marks import is_dropped
from service.edge.fields import LENGTH, WireTime, decode_only, decode_table, short_text

DEFAULT_LONGEST = 64 * 1024
ANY_NAME = re.compile(r".*", re.DOTALL)


class Headers(dict[str, object]):
    """A header table as it came: what could be read, the bytes themselves, and what is wrong."""

    __slots__ = ("fault", "raw")

    def __init__(self, raw: bytes, longest: int) -> None:
        self.raw = raw
        if len(raw) > longest:  # decoding 60 000 booleans holds the event loop for most of a second
            self.fault = f"headers of {len(raw)} bytes are over the limit of {longest}"
            super().__init__(decode_only(raw, is_dropped, longest))
        else:
            read, self.fault = decode_table(raw)
            super().__init__(read)

    def __bool__(self) -> bool:
        """Always: aio-pika would put an empty table of its own in place of one that says nothing."""
        return True


def install(longest: int = DEFAULT_LONGEST) -> None:
    """Teach pamqp to read what RabbitMQ sends and to write it again unchanged; safe to repeat."""

    def table(value: bytes) -> tuple[int, Headers]:
        end = 4 + LENGTH.unpack_from(value)[0]
        return end, Headers(bytes(value[4:end]), longest)

    decode.METHODS["table"] = table  # type: ignore[assignment]  # a table is wider here than pamqp's
    decode.METHODS["shortstr"] = _short_str
    decode.METHODS["timestamp"] = _timestamp
    encode.METHODS["shortstr"] = _encode_short_str
    encode.METHODS["timestamp"] = _encode_timestamp
    header.ContentHeader.unmarshal = _unmarshal  # type: ignore[method-assign]  # as above
    for name in ("queue-name", "exchange-name"):  # RabbitMQ takes any: `größe (neu)`
        constants.DOMAIN_REGEX[name] = ANY_NAME
    _prove()


def _unmarshal(self: header.ContentHeader, data: bytes) -> None:
    """aio-pika stumbles over delivery modes that are neither 1 nor 2; RabbitMQ 4 lets them through."""
    plain_unmarshal(self, data)
    if self.properties.delivery_mode not in (None, 1, 2):
        self.properties.delivery_mode = 1


def _short_str(value: bytes) -> tuple[int, str]:
    end = 1 + value[0]
    return end, bytes(value[1:end]).decode("utf-8", "surrogateescape")


def _timestamp(value: bytes) -> tuple[int, WireTime]:
    return 8, WireTime.of(struct.unpack_from(">Q", value)[0])


def _encode_short_str(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"str required, received {type(value)}")
    return short_text(value)


def _encode_timestamp(value: datetime) -> bytes:
    wire = value.wire if isinstance(value, WireTime) else int(value.timestamp())
    return struct.pack(">Q", wire)


plain_table: Callable[..., bytes] = encode.field_table
plain_unmarshal = header.ContentHeader.unmarshal

POISON = (
    b"\x04when" + b"T" + b"\xff" * 8,
    b"\x02\xff\xfe" + b"t\x01",
    b"\x04deep"
    + b"A"
    + LENGTH.pack(5 * 500)
    + b"".join(b"A" + LENGTH.pack(5 * n) for n in range(499, -1, -1)),
)


def _prove() -> None:
    """A start-up self-test: another pamqp may have moved the places where we stand in."""
    commands.Queue.Declare(queue="größe (neu)")
    commands.Basic.Publish(exchange="größe (neu)")
    for field in POISON:
        flags, text = struct.pack(">H", 0x8000 | 0x2000), b"\x01\xff"
        wire = struct.pack(">HHQ", 60, 0, 0) + flags + text + LENGTH.pack(len(field)) + field
        back = header.ContentHeader()
        back.unmarshal(wire)
        table = back.properties.headers
        if not (isinstance(table, Headers) and table.raw == field and table.fault):
            raise RuntimeError(
                "this version of pamqp cannot be taught to read every header: pin 4.0.1"
            )
