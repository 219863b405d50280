"""AMQP tables: read whatever is there, write it again byte for byte."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import encode

from service.core.marks import LETTER, SIGNATURE
from service.edge.fields import (
    LENGTH,
    Unreadable,
    WireTime,
    decode_table,
    encode_marks,
    find_text,
    short_text,
    walk,
    without,
)
from service.edge.letter import Letter, dress, properties_of
from service.edge.tolerance import Headers, install

install()

names = st.text(min_size=1, max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.binary().map(bytearray)
)
values = st.recursive(scalars, lambda v: st.lists(v) | st.dictionaries(names, v), max_leaves=20)
tables = st.dictionaries(names, values, max_size=12)


@given(tables)
def test_what_pamqp_writes_is_read_again(table: dict[str, object]) -> None:
    raw = encode.field_table(table)[4:]  # type: ignore[arg-type]  # wider than its annotation
    assert decode_table(raw) == (table, "")


@given(tables, st.sets(names))
def test_what_is_not_dropped_stays_byte_for_byte(
    table: dict[str, object], dropped: set[str]
) -> None:
    gone = {name.encode() for name in {*dropped, *list(table)[:2]}}
    raw = encode.field_table(table)[4:]  # type: ignore[arg-type]  # wider than its annotation
    fields = [raw[at:stop] for name, at, _, stop in walk(raw) if name not in gone]
    assert without(raw, gone.__contains__) == b"".join(fields)


@given(st.binary(max_size=300))
def test_no_bytes_raise(raw: bytes) -> None:
    read, fault = decode_table(raw)
    assert isinstance(read, dict)
    assert isinstance(fault, str)
    assert isinstance(Headers(raw, 64).fault, str)


FIELDS = {
    "a double": (b"d" + struct.pack(">d", 0.1), 0.1),
    "a float": (b"f" + struct.pack(">f", 0.5), 0.5),
    "an unsigned byte": (b"B\xff", 255),
    "a decimal": (b"D\x02" + struct.pack(">i", -150), -1.5),
    "a time": (b"T" + struct.pack(">Q", 1_767_323_045), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    "a time in milliseconds": (
        b"T" + struct.pack(">Q", 1_767_323_045_000),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ),
    "text that is no UTF-8": (b"S" + LENGTH.pack(2) + b"\xff\xfe", bytearray(b"\xff\xfe")),
    "nothing": (b"V", None),
}


@pytest.mark.parametrize(("field", "value"), FIELDS.values(), ids=FIELDS)
def test_every_kind_of_field_is_read(field: bytes, value: object) -> None:
    read, fault = decode_table(short_text("f") + field)
    assert fault == ""
    assert read["f"] == value


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        (b"\x01t" + b"T" + b"\xff" * 8, "header 't' cannot be read: timestamp"),
        (b"\x02\xff\xfe" + b"V", "header '\\\\xff\\\\xfe' cannot be read: its name is not UTF-8"),
        (b"\x01q" + b"?", "the header table cannot be read: unknown field type b'?'"),
        (b"\x01s" + b"S" + LENGTH.pack(9) + b"x", "a field longer than its table"),
        (b"\x05", "it ends too soon"),
        (b"\x01n" + b"F" + LENGTH.pack(3) + b"\x01\xff" + b"V", "a name in it is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_said(field: bytes, fault: str) -> None:
    good = short_text("good") + b"t\x01"
    read, said = decode_table(good + field)
    assert read["good"] is True
    assert fault in said or said.endswith(fault)


def test_nesting_has_a_bottom() -> None:
    inner = b""
    for _ in range(1000):
        inner = b"A" + LENGTH.pack(len(inner)) + inner
    assert "nested more than 32 deep" in decode_table(short_text("deep") + inner)[1]


def test_a_fault_at_the_bottom_is_looked_for_once() -> None:
    inner = b"\x01q?"
    for _ in range(30):
        inner = b"\x01n" + b"F" + LENGTH.pack(len(inner)) + inner
    fault = decode_table(inner)[1]  # at every level anew it would take hours
    assert fault == "header 'n' cannot be read: unknown field type b'?'"


def test_one_field_is_found_without_reading_the_others() -> None:
    raw = b"\x03bad" + b"T" + b"\xff" * 8 + encode_marks({LETTER: "id-1"})
    assert find_text(raw, LETTER) == b"id-1"
    assert find_text(raw, SIGNATURE) is None


def test_marks_are_as_wide_whatever_their_number() -> None:
    assert len({len(encode_marks({"n": n})) for n in (0, 1, 127, 128, 70_000, 2**31 - 1)}) == 1


def test_a_name_over_255_bytes_is_an_error_not_another_name() -> None:
    with pytest.raises(ValueError, match="255 bytes"):
        short_text("x" * 256)


@pytest.mark.parametrize("wire", [0, 1, 2**32, 1_767_323_045_000, 253_402_300_800_000, 2**64 - 1])
def test_a_timestamp_leaves_as_the_number_it_came(wire: int) -> None:
    letter = Letter(b"", {}, {"timestamp": WireTime.of(wire)})
    assert struct.pack(">Q", wire) in properties_of(letter, {}, 1000)


def test_headers_that_leave_no_room_for_marks_are_left_out_and_counted() -> None:
    headers = Headers(short_text("big") + b"S" + LENGTH.pack(5000) + b"x" * 5000, 64_000)
    read, _ = decode_table(dress(headers, {LETTER: "id"}, room=5000))
    assert read == {LETTER: "id", "x-dlo-dropped-headers": len(headers.raw)}


def test_a_table_that_cannot_be_walked_is_left_out() -> None:
    with pytest.raises(Unreadable):
        list(walk(b"\x01q?"))
    read, fault = decode_table(dress(Headers(b"\x01q?", 64), {LETTER: "id"}, room=5000))
    assert (read, fault) == ({LETTER: "id"}, "")


def test_headers_over_the_limit_are_kept_and_not_decoded() -> None:
    headers = Headers(short_text("n") + b"S" + LENGTH.pack(100) + b"x" * 100, longest=64)
    assert (len(headers), len(headers.raw)) == (0, 107)
    assert headers.fault == "headers of 107 bytes are over the limit of 64"


def test_of_headers_over_the_limit_only_the_history_is_read() -> None:
    big = short_text("n") + b"S" + LENGTH.pack(100) + b"x" * 100
    headers = Headers(encode_marks({LETTER: "id"}) + big, longest=64)
    assert dict(headers) == {LETTER: "id"}
    assert "over the limit" in headers.fault
