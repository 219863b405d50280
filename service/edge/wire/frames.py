"""AMQP frames as bytes: the few that every letter needs are written by hand, the rare ones by pamqp."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pamqp import frame
from pamqp.base import Frame

from service.edge.fields import short_text

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
END = b"\xce"
END_OCTET = END[0]
SMALLEST = 8  # bytes around the payload of a frame
BASIC = 60
# Class and method, as they stand at the head of a method's payload.
DELIVER, RETURN = b"\x00\x3c\x00\x3c", b"\x00\x3c\x00\x32"
ACK, NACK = b"\x00\x3c\x00\x50", b"\x00\x3c\x00\x78"
PREFIX, SIZE, TAG = struct.Struct(">BHI"), struct.Struct(">Q"), struct.Struct(">QB")
CONTENT = struct.Struct(">HHQ")
SETTLED = struct.Struct(">BHI4sQB1s")  # an ack, a nack or a reject: a whole frame of 21 bytes
PUBLISH, MANDATORY = b"\x00\x3c\x00\x28\x00\x00", b"\x01"
REJECT = b"\x00\x3c\x00\x5a"
PULSE = PREFIX.pack(HEARTBEAT, 0, 0) + END


class Broken(ConnectionError):
    """Bytes that are no AMQP: there is nothing to go on with but another connection."""


def split(data: bytes) -> Iterator[tuple[int, int, bytes, int]]:
    """The whole frames at the head of the data: kind, channel, payload, and where the frame ends."""
    at, end = 0, len(data)
    while end - at >= SMALLEST:
        kind, channel, size = PREFIX.unpack_from(data, at)
        payload = at + 7
        stop = payload + size
        if stop >= end:
            return
        if data[stop] != END_OCTET:
            raise Broken("a frame that does not end where it says")
        at = stop + 1
        yield kind, channel, data[payload:stop], at


def write(method: Frame, channel: int) -> bytes:
    """A method's frame."""
    return frame.marshal(method, channel)


def read(payload: bytes) -> Frame:
    """The method in a payload."""
    whole = PREFIX.pack(METHOD, 0, len(payload)) + payload + END
    try:
        method = frame.unmarshal(whole)[2]
    except Exception as error:  # noqa: BLE001  # pamqp raises what it likes
        raise Broken(f"a method that cannot be read: {error!r}") from None
    if not isinstance(method, Frame):
        raise Broken("a method that is none")
    return method


def publish(exchange: str, routing_key: str, channel: int) -> bytes:
    """The first frame of a mandatory publish."""
    payload = PUBLISH + short_text(exchange) + short_text(routing_key) + MANDATORY
    return PREFIX.pack(METHOD, channel, len(payload)) + payload + END


def ack(channel: int, tag: int, *, upto: bool) -> bytes:
    """Acknowledge one delivery, or all up to this one."""
    return SETTLED.pack(METHOD, channel, 13, ACK, tag, upto, END)


def reject(channel: int, tag: int, *, requeue: bool) -> bytes:
    """Give one delivery back, or up. By reject: RabbitMQ 4.3 does not count a nack."""
    return SETTLED.pack(METHOD, channel, 13, REJECT, tag, requeue, END)


def content(channel: int, properties: bytes, body: bytes, room: int) -> list[bytes]:
    """A content header and the body behind it, in frames of so many bytes."""
    head = CONTENT.pack(BASIC, 0, len(body))
    pieces = [PREFIX.pack(HEADER, channel, len(head) + len(properties)), head, properties, END]
    if len(body) <= room:
        return [*pieces, PREFIX.pack(BODY, channel, len(body)), body, END] if body else pieces
    for at in range(0, len(body), room):
        part = body[at : at + room]
        pieces += (PREFIX.pack(BODY, channel, len(part)), part, END)
    return pieces
