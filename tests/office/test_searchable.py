"""What is searched: any headers make JSON that every database takes, the short way as the long one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.cleaning import LARGEST_FACTS, facts
from service.office.searchable import searchable

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.datetimes(timezones=st.just(UTC))
    | st.text(max_size=30)
    | st.binary(max_size=30).map(bytearray)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


def strictly(text: str) -> Any:
    """As PostgreSQL reads JSON: no NaN, no half characters, no NUL."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert "\\u0000" not in text.replace("\\\\", "")
    text.encode()
    return json.loads(text, parse_constant=refuse)


@given(st.dictionaries(st.text(max_size=30), VALUES, max_size=5))
def test_any_headers_are_searched_alike(headers: dict[str, object]) -> None:
    text = searchable(headers, {})
    assert len(text.encode()) <= LARGEST_FACTS
    if "…" not in facts(headers, {}):  # nothing had to be left out
        assert strictly(text) == strictly(facts(headers, {}))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("ä€😀", "ä€😀"),
        ("a\x00b", "a␀b"),
        ("half \udc80", "half ?"),
        (bytearray(b"\xff"), "\N{REPLACEMENT CHARACTER}"),
        (bytearray(b"text"), "text"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 11, 18, 3, 4, 5, tzinfo=UTC), "2026-11-18T03:04:05Z"),
        ("C:\\users", "C:\\users"),
    ],
)
@pytest.mark.parametrize("padding", ["", "x" * 900], ids=["small", "large"])
def test_a_value_is_found_whichever_way_it_was_written(
    value: object, found: str, padding: str
) -> None:
    headers = {"it": value} | {f"padding {n}": padding for n in range(6)}
    assert strictly(searchable(headers, {}))["headers"]["it"] == found
