"""SQLite lets any type into any column: nothing in a row can break the reading."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.core.route import Route
from service.ledger.rows import Row, read

anything = st.none() | st.integers() | st.floats() | st.text() | st.binary()


@given(anything, anything, anything, anything)
def test_any_row_beside_a_good_one(
    name: object, max_retries: object, delays: object, return_to: object
) -> None:
    good = Row(1, "good", 2, "10s", "queue")
    tiers = (timedelta(seconds=10),)
    reading = read([good, Row(2, name, max_retries, delays, return_to)], tiers)
    assert reading.book.find("good") == Route("good", 2, tiers)
    assert len(reading.book.exact) + len(reading.book.patterns) <= 2
    assert all(complaint.startswith("dlq_event_config row 2") for complaint in reading.complaints)
