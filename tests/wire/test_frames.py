"""Frames as bytes: what we write is what pamqp writes, and what arrives in pieces is put together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pamqp import body, commands, frame

from service.edge.wire import frames


def split(data: bytes) -> tuple[list[tuple[int, int, bytes]], bytes]:
    """The frames in the data, and the rest."""
    done, found = 0, []
    for kind, channel, payload, stop in frames.split(data):
        found.append((kind, channel, payload))
        done = stop
    return found, data[done:]


@pytest.mark.parametrize("upto", [False, True])
def test_settling_frames_are_those_of_the_protocol(upto: bool) -> None:
    tag = 2**40 + 1
    assert frames.ack(3, tag, upto=upto) == frame.marshal(commands.Basic.Ack(tag, upto), 3)
    rejected = frame.marshal(commands.Basic.Reject(tag, upto), 3)
    assert frames.reject(3, tag, requeue=upto) == rejected


def test_a_publish_is_that_of_the_protocol() -> None:
    method = commands.Basic.Publish(exchange="shop", routing_key="order.ä", mandatory=True)
    assert frames.publish("shop", "order.ä", 9) == frame.marshal(method, 9)


@given(some.binary(max_size=40), some.integers(1, 16))
def test_a_body_is_cut_into_frames_that_hold_it(content: bytes, room: int) -> None:
    (kind, channel, head), *bodies = split(b"".join(frames.content(7, b"\0\0", content, room)))[0]
    assert (kind, channel, head[4:12]) == (frames.HEADER, 7, len(content).to_bytes(8, "big"))
    assert all(kind == frames.BODY and 0 < len(part) <= room for kind, _, part in bodies)
    assert b"".join(part for _, _, part in bodies) == content


@given(some.lists(some.binary(max_size=30), max_size=5), some.integers(1, 20))
def test_frames_that_arrive_in_pieces(payloads: list[bytes], piece: int) -> None:
    data = b"".join(frame.marshal(body.ContentBody(payload), 1) for payload in payloads)
    seen, rest = [], b""
    for at in range(0, len(data), piece):
        found, rest = split(rest + data[at : at + piece])
        seen += found
    assert rest == b""
    assert [payload for _, _, payload in seen] == payloads


def test_a_frame_without_its_end_is_no_amqp() -> None:
    whole = frame.marshal(commands.Channel.Open(), 1)
    with pytest.raises(frames.Broken):
        split(whole[:-1] + b"\x00")
