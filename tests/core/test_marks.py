"""Marks: what is stamped is read again, what is forged is not, and nothing ever raises or grows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core import marks as names
from service.core.delivery import Envelope, come_back, dead_lettered, in_hand
from service.core.history import Death, deliveries_before, newest_death, rejection, rejections
from service.core.judge import judge
from service.core.marks import Marks, Origin, Seal, Unmarked, is_dropped, read, shorten, stamp
from service.core.outcome import Failed, Refused
from service.core.plan import Address, Publish, Ways, plan
from service.core.policy import Policy
from service.core.verdict import Why
from service.edge.fields import encode_marks

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEAL = Seal(b"sixteen bytes and more")
MARKS = Marks(
    "id", "dlq_processor", Origin("orders", "shop", "order.created"), 2, NOW, {"rejected": 2}
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary().map(bytearray)
    | st.datetimes()
    | st.just(Decimal("1.5"))
)
values = st.recursive(
    scalars, lambda deeper: st.lists(deeper) | st.dictionaries(st.text(), deeper), max_leaves=12
)
known = st.sampled_from(sorted(names.OURS | {"x-death", "CC", "x-first-death-queue"}))
tables = st.dictionaries(known | st.text(), values, max_size=16)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda m: m.replace(tzinfo=UTC)
)
any_marks = st.builds(
    Marks,
    letter=st.text(),
    flow=st.text(),
    origin=st.builds(Origin, st.text(), st.text(), st.text()),
    retries=st.integers(0, 2**31 - 1),
    first_failure=moments.map(lambda m: m.replace(microsecond=0)),
    deaths=st.dictionaries(st.sampled_from(["rejected", "expired"]), st.integers(1, 2**31 - 1)),
)


@given(any_marks, st.binary())
def test_what_is_stamped_is_read_again(marks: Marks, key: bytes) -> None:
    assert read(stamp(marks, Seal(key)), Seal(key)) == marks


def test_names_that_no_broker_has_are_no_marks() -> None:
    longest = replace(MARKS, origin=Origin("q" * 255, "e" * 255, "k" * 255))
    assert read(stamp(longest, SEAL), SEAL) == longest
    longer = replace(MARKS, origin=Origin("q" * 2000, "", ""))
    assert isinstance(read(stamp(longer, SEAL), SEAL), Unmarked)


@given(tables, st.sampled_from([SEAL, Seal()]))
def test_any_header_table_gives_marks_or_unmarked(table: dict[str, object], seal: Seal) -> None:
    assert isinstance(read(table, seal), Marks | Unmarked)


@given(tables)
def test_no_header_table_is_believed_without_our_signature(table: dict[str, object]) -> None:
    assert isinstance(read(table, SEAL), Unmarked)


@given(tables, st.text() | st.none())
def test_any_header_table_makes_a_delivery(
    table: dict[str, object], message_id: str | None
) -> None:
    envelope = Envelope(message_id, table, "fresh", NOW)
    for delivery in (dead_lettered(envelope, "f", SEAL), come_back(envelope, "f", SEAL)):
        assert delivery.retries == 0


CHANGES: list[Marks] = [
    replace(MARKS, letter="other"),
    replace(MARKS, flow="other"),
    replace(MARKS, retries=0),
    replace(MARKS, origin=replace(MARKS.origin, queue="victim")),
    replace(MARKS, origin=replace(MARKS.origin, exchange="other")),
    replace(MARKS, origin=replace(MARKS.origin, routing_key="other")),
    replace(MARKS, first_failure=NOW + timedelta(days=1)),
]


@pytest.mark.parametrize("changed", CHANGES)
def test_no_signed_mark_can_be_changed(changed: Marks) -> None:
    forged = stamp(changed, SEAL) | {names.SIGNATURE: stamp(MARKS, SEAL)[names.SIGNATURE]}
    assert read(forged, SEAL) == Unmarked("marks that our key did not sign")


def test_parts_cannot_be_shifted_into_each_other() -> None:
    one = replace(MARKS, origin=Origin("a", "bc", "d"))
    other = replace(MARKS, origin=Origin("ab", "c", "d"))
    assert SEAL.sign(one) != SEAL.sign(other)


def test_another_key_does_not_vouch() -> None:
    assert isinstance(read(stamp(MARKS, Seal(b"another key")), SEAL), Unmarked)


def test_a_former_key_still_vouches_and_no_longer_signs() -> None:
    former, rotated = Seal(b"the former key"), Seal(b"the new key", old=(b"the former key",))
    assert read(stamp(MARKS, former), rotated) == MARKS
    assert isinstance(read(stamp(MARKS, rotated), former), Unmarked)


def test_a_letter_with_marks_nobody_signed_says_what_they_claim() -> None:
    envelope = Envelope("id", dict(stamp(MARKS, Seal(b"another key"))), "fresh", NOW)
    outcome = come_back(envelope, MARKS.flow, SEAL).outcome
    assert isinstance(outcome, Refused)
    assert outcome.error.endswith("marks that our key did not sign; they name the queue orders")


def test_without_a_key_marks_are_believed_as_read() -> None:
    assert read(stamp(MARKS, Seal()), Seal()) == MARKS


def test_the_seal_does_not_show_its_key() -> None:
    assert "sixteen" not in repr(SEAL)


@pytest.mark.parametrize(
    "name", [*sorted(names.OURS), "x-death", "x-delivery-count", "CC", "BCC", "x-last-death-queue"]
)
def test_what_never_travels_on(name: str) -> None:
    assert is_dropped(name)


@pytest.mark.parametrize("name", ["cc", "tenant", "x-dlo-fingerprint", "x-deaths"])
def test_what_travels_on(name: str) -> None:
    assert not is_dropped(name)


@given(st.text(), st.integers(8, 64))
def test_error_text_is_cut_to_its_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit).encode()) <= limit


def death(queue: str = "orders", reason: str = "rejected") -> dict[str, object]:
    """An entry as the broker writes it."""
    entry = {
        "queue": queue,
        "exchange": "shop",
        "routing-keys": ["order.created"],
        "reason": reason,
    }
    return {"x-death": [entry | {"count": 1}]}


def test_a_hundred_retries_leave_the_marks_as_large_as_one() -> None:
    ways = Ways(Publish(lambda *_: Address("e", "k")), Publish(lambda *_: Address("d", "k")))
    headers: dict[str, object] = {}
    sizes = set()
    for _ in range(100):
        envelope = Envelope("id", headers | death(), "fresh", NOW)
        delivery = dead_lettered(envelope, "dlq_processor", SEAL)
        todo = plan(judge(delivery, Policy((timedelta(1),), -1)), delivery, ways, SEAL)
        headers = dict(todo.sends[0].marks)
        sizes.add(len(encode_marks(todo.sends[0].marks)))
    assert headers[names.RETRY_COUNT] == 100
    assert len(sizes) == 1


def test_a_letter_copied_to_another_queue_starts_anew() -> None:
    envelope = Envelope("id", stamp(MARKS, SEAL) | death("billing"), "fresh", NOW)
    delivery = dead_lettered(envelope, MARKS.flow, SEAL)
    assert (delivery.retries, delivery.origin.queue) == (0, "billing")


def test_marks_copied_to_another_letter_do_not_count() -> None:
    envelope = Envelope("another id", stamp(MARKS, SEAL) | death(), "fresh", NOW)
    assert dead_lettered(envelope, MARKS.flow, SEAL).retries == 0
    assert come_back(envelope, MARKS.flow, SEAL).outcome == Refused(
        "no origin: its marks belong to another letter", Why.NO_ORIGIN
    )


def test_the_origin_of_a_retried_letter_is_the_first_one() -> None:
    back: dict[str, object] = {
        "x-death": [{"queue": "orders", "exchange": "", "routing-keys": ["orders"]}]
    }
    delivery = dead_lettered(
        Envelope("id", {**stamp(MARKS, SEAL), **back}, "", NOW), MARKS.flow, SEAL
    )
    assert delivery.origin == MARKS.origin


def test_a_letter_that_claims_to_have_failed_in_our_own_machinery_has_no_origin() -> None:
    envelope = Envelope("id", death("queue.delay.1"), "fresh", NOW)
    delivery = dead_lettered(envelope, "f", SEAL, frozenset({"queue.delay.1"}))
    assert isinstance(delivery.outcome, Refused)
    assert delivery.outcome.why is Why.NO_ORIGIN


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("rejected", "rejected by a consumer of orders"),
        ("expired", "expired in orders"),
        ("maxlen", "pushed out of orders, which was full"),
        ("delivery_limit", "delivered too often from orders"),
        ("whatever", "dead-lettered from orders"),
    ],
)
def test_how_a_letter_died_is_said_in_words(reason: str, error: str) -> None:
    outcome = dead_lettered(Envelope("id", death(reason=reason), "", NOW), "f", SEAL).outcome
    assert isinstance(outcome, Failed)
    assert outcome.error == error


def test_the_rejections_of_a_queue_are_neither_the_newest_entry_nor_the_sum() -> None:
    entries = [
        {"queue": "wms.retry-queue.a", "exchange": "", "reason": "expired", "count": 3},
        {"queue": "wms.queue.a", "exchange": "x", "reason": "rejected", "count": 3},
        {"queue": "wms.queue.b", "exchange": "x", "reason": "rejected", "count": 9},
    ]
    assert rejections({"x-death": entries}, "wms.queue.a") == 3
    assert rejections({"x-death": entries}, "wms.queue.c") == 0


@pytest.mark.parametrize(
    ("time", "since"),
    [(NOW, NOW), (NOW.replace(tzinfo=None), None), ("yesterday", None), (None, None)],
)
def test_a_rejection_knows_the_first_address_and_since_when(
    time: object, since: datetime | None
) -> None:
    entry = {"queue": "q", "exchange": "x", "reason": "rejected", "count": 2, "time": time}
    death = rejection({"x-death": [{**entry, "routing-keys": ["k", "cc"]}]}, "q")
    assert death == Death("q", "x", "k", "rejected", 2, since)


@given(tables, st.booleans())
def test_any_header_table_has_a_broker_count(table: dict[str, object], redelivered: bool) -> None:
    assert rejections(table, "q") >= 0
    assert deliveries_before(table, redelivered=redelivered) >= 0


@pytest.mark.parametrize(
    ("count", "redelivered", "before"),
    [(2, True, 2), (2, False, 0), (None, True, 0), (-1, True, 0), (True, True, 0), ("2", True, 0)],
)
def test_the_brokers_delivery_count(count: object, redelivered: bool, before: int) -> None:
    assert deliveries_before({"x-delivery-count": count}, redelivered=redelivered) == before


def test_a_letter_in_hand_counts_our_mark_and_what_the_broker_counted_since() -> None:
    signed = dict(stamp(MARKS, SEAL))
    at_home = in_hand(Envelope("id", signed, "f", NOW), MARKS.flow, SEAL, "orders", more=3)
    elsewhere = in_hand(Envelope("id", signed, "f", NOW), MARKS.flow, SEAL, "billing", more=3)
    assert (at_home.retries, elsewhere.retries) == (5, 3)


@pytest.mark.parametrize(
    "forged",
    [
        None,
        [],
        "x",
        [None],
        [{}],
        [{"queue": 1}],
        [{"queue": ""}],
        [{"queue": "q"}],
        [{"queue": "q" * 256, "exchange": ""}],
        {"queue": "q"},
    ],
)
def test_an_x_death_that_no_broker_wrote_is_none(forged: object) -> None:
    assert newest_death({"x-death": forged}) is None
