"""The short way through a header table finds what the long way finds, in every table there is."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from service.core.marks import is_dropped
from service.edge.fields import decode_only, without
from service.edge.tolerance import Headers
from service.edge.wire.headers import walk
from tests.kit.wire import counted, field
from tests.poison import fuzz
from tests.poison.poisons import BAD_NAME, BOOLEANS, FAR, deaths, nested

LONGEST = 64 * 1024
DEATHS = deaths()
# A table, and the text in it, three bytes longer than the list that they stand in.
PAST_ITS_END = b"F\x00\x00\x00\x14" + b"\x05queue" + b"S\x00\x00\x00\x09" + b"orders"


def agrees(table: bytes) -> None:
    """Both ways: what is ours, what travels on, what is wrong."""
    headers = Headers(table, LONGEST)
    known, kept, _, fault = walk(table, LONGEST)
    ours = decode_only(table, is_dropped, LONGEST)
    assert fault == headers.fault
    assert {n: repr(v) for n, v in known.items() if is_dropped(n)} == {
        n: repr(v) for n, v in headers.items() if is_dropped(n)
    }
    assert fault or known.keys() == ours.keys()
    assert kept == without(table, lambda n: is_dropped(n.decode("utf-8", "surrogateescape")))


@settings(max_examples=300)
@given(some.integers(0, 2**32))
def test_tables_written_by_chance(seed: int) -> None:
    agrees(fuzz.table(Random(seed), depth=0))


@settings(max_examples=300)
@given(some.integers(0, 2**32))
def test_histories_written_by_chance(seed: int) -> None:
    chance = Random(seed)
    entries = [b"F" + counted(fuzz.table(chance, depth=2)) for _ in range(chance.randrange(3))]
    if chance.random() < 0.3:
        entries.append(b"".join(fuzz.value(chance, depth=2)))
    agrees(field("x-death", b"A", counted(b"".join(entries))))


@pytest.mark.parametrize(
    "table",
    [
        b"",
        BAD_NAME,
        BOOLEANS,
        DEATHS,
        nested(b"F", 33),
        nested(b"A", 31),
        field("t", b"T", FAR),
        field("x-death", b"A", counted(BAD_NAME)),
        BAD_NAME + field("t", b"T", FAR),
        field("x-dlo-id", b"S", counted(b"\xff")),
        field("x-dlo-id", b"T", FAR),
        field("x-death", b"A", counted(PAST_ITS_END)),
    ],
)
def test_odd_tables(table: bytes) -> None:
    agrees(table)


@pytest.mark.parametrize("table", [b"\x05abc", b"\x01aZ", b"\x01aS\x00\x00\x00\x09x", b"\x01a"])
def test_what_is_no_table_is_a_fault_and_not_an_error(table: bytes) -> None:
    known, kept, history, fault = walk(table, LONGEST)
    assert (dict(known), kept, history) == ({}, b"", b"")
    assert fault == Headers(table, LONGEST).fault != ""
