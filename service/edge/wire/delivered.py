"""A delivery as it came over the wire: nothing of it is decoded before somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.edge.fields import LENGTH

if TYPE_CHECKING:
    from service.edge.wire.consumer import Consumer

CONTENT_TYPE, CONTENT_ENCODING, HEADERS = 0x80, 0x40, 0x20


class Delivered:
    """One letter out of a queue: its tag, where it was published, its properties, its body."""

    __slots__ = ("body", "consumer", "exchange", "properties", "redelivered", "routing_key", "tag")

    def __init__(self, consumer: Consumer, head: bytes, properties: bytes, body: bytes) -> None:
        self.consumer, self.properties, self.body = consumer, properties, body
        at = 5 + head[4]  # class, method, the consumer's tag
        self.tag = int.from_bytes(head[at : at + 8], "big")
        self.redelivered = bool(head[at + 8])
        exchange = at + 10 + head[at + 9]
        self.exchange = head[at + 10 : exchange].decode("utf-8", "surrogateescape")
        self.routing_key = head[exchange + 1 :].decode("utf-8", "surrogateescape")

    @property
    def headers(self) -> bytes:
        """The header table as it was written, without its length; empty where there is none."""
        start, stop = table_at(self.properties)
        return self.properties[start:stop]

    @property
    def weight(self) -> int:
        """Bytes that it holds in memory."""
        return len(self.body) + len(self.properties)

    def lay_aside(self) -> None:
        """Leave it unsettled, and hold its bytes no longer."""
        self.consumer.lay_aside(self.tag)
        self.properties, self.body = b"\0\0", b""


def table_at(properties: bytes) -> tuple[int, int]:
    """Where the header table stands in property bytes; the same place twice where there is none."""
    flags, at = properties[0], 2
    if flags & CONTENT_TYPE:
        at += 1 + properties[at]
    if flags & CONTENT_ENCODING:
        at += 1 + properties[at]
    if not flags & HEADERS:
        return at, at
    return at + 4, at + 4 + LENGTH.unpack_from(properties, at)[0]
