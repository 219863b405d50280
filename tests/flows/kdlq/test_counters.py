"""Counters in every way they are written, and in every way they should not be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.marks import KILLS, ORIG_OFFSET, ORIG_PARTITION, ORIG_TS
from service.core.policy import SPENT
from service.flows.kdlq.counters import count_in, number, originals


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (3, 3),
        ("3", 3),
        (b"3", 3),
        (bytearray(b"12"), 12),
        (b"1000", 1000),  # four digits, not four bytes
        (b"\x00\x00\x00\x03", 3),
        ("\x00\x00\x00\x03", 3),  # those bytes are UTF-8
        (bytearray(b"\x00\x00\x00\xc8"), 200),  # those are not
        (b"\x00" * 7 + b"\x05", 5),
        (SPENT - 1, SPENT - 1),
        (b"many", SPENT),  # four bytes, but no count
        ("many", SPENT),
        (-1, SPENT),
        ("-1", SPENT),
        (b"\xff\xff\xff\xff", SPENT),
        (b"", SPENT),
        (b"\x01", SPENT),
        (None, SPENT),
        (True, SPENT),
        (1.5, SPENT),
        ("9" * 400, SPENT),
        (SPENT, SPENT),
        ([1], SPENT),
    ],
)
def test_a_counter(value: object, count: int) -> None:
    assert count_in({KILLS: value}, KILLS) == count


def test_no_counter_is_none_yet() -> None:
    assert count_in({}, KILLS) == 0


@given(
    st.one_of(st.binary(), st.text(), st.integers(), st.none(), st.floats(), st.lists(st.none()))
)
def test_whatever_it_is_it_is_a_count(value: object) -> None:
    assert 0 <= count_in({KILLS: value}, KILLS) <= SPENT


def test_the_first_hop_wins() -> None:
    place = {"offset": 9, "partition": 2, "timestamp": 5}
    assert originals({}, place) == {ORIG_OFFSET: 9, ORIG_PARTITION: 2, ORIG_TS: 5}
    known = {ORIG_OFFSET: (4).to_bytes(8, "big"), ORIG_TS: "odd"}
    assert originals(known, place) == {ORIG_OFFSET: 4, ORIG_PARTITION: 2, ORIG_TS: 5}
    assert originals({ORIG_OFFSET: b"\xff" * 8}, {}) == {}
    assert number(2**70) == 2**70
    assert originals({ORIG_OFFSET: 2**70}, {}) == {}  # no wire has room for it
