"""The mark of a replay: believed for this letter in this queue, travels with retries, earns a receipt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core import marks as names
from service.core.delivery import Envelope, come_back, dead_lettered, in_hand
from service.core.marks import ABSENT, Marks, Origin, Seal, read, stamp
from service.core.outcome import Failed
from service.core.plan import (
    RECEIPTS,
    Address,
    Errand,
    Note,
    Plan,
    Publish,
    Settle,
    Ways,
    plan,
    replaying,
)
from service.core.replayed import Replayed, marked, received, replayed_in
from service.core.verdict import Accept, Bury, Retry

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEAL, OTHER = Seal(b"sixteen bytes and more"), Seal(b"another sixteen and more")
ONE = Replayed("0123456789abcdef", 7, "0123456789abcdef0123456789abcdef")
BODY = b'{"order": 1}'
MARK = marked(ONE, "orders", BODY, SEAL)
MARKS = Marks("id", "f", Origin("orders", "shop", "order.created"), 3, NOW, {"rejected": 4}, MARK)
WAYS = Ways(Publish(lambda *_: Address("w", "k")), Publish(lambda *_: Address("d", "k")))


def test_what_was_marked_is_recognised() -> None:
    assert replayed_in(MARK, "orders", BODY, SEAL) == ONE
    assert len(MARK) <= names.LONGEST_REPLAY


@pytest.mark.parametrize(
    ("text", "queue", "body", "seal"),
    [
        (MARK, "billing", BODY, SEAL),  # a consumer copied the headers to another queue
        (MARK, "orders", b"another", SEAL),  # … or to another letter
        (MARK, "orders", BODY, OTHER),
        (marked(ONE, "orders", BODY, Seal()), "orders", BODY, SEAL),  # unsigned
        (MARK.replace(".7.", ".8."), "orders", BODY, SEAL),
        ("", "orders", BODY, SEAL),
        ("nonsense", "orders", BODY, SEAL),
    ],
)
def test_what_was_not_is_not(text: str, queue: str, body: bytes, seal: Seal) -> None:
    assert replayed_in(text, queue, body, seal) is None


def test_a_former_key_is_believed() -> None:
    assert replayed_in(MARK, "orders", BODY, Seal(OTHER.key, (SEAL.key,))) == ONE


@given(st.text(), st.text(), st.binary())
def test_no_text_raises(text: str, queue: str, body: bytes) -> None:
    assert replayed_in(text, queue, body, SEAL) is None


def test_it_travels_with_retries_and_burials() -> None:
    dead = {**stamp(MARKS, SEAL), "x-death": [_death("orders")]}
    delivery = dead_lettered(Envelope(None, dead, "fresh", NOW), "f", SEAL)
    for verdict in (Retry(4, timedelta(seconds=5)), Bury("spent")):
        send = plan(verdict, delivery, WAYS, SEAL).sends[0]
        assert send.marks[names.REPLAY] == MARK
    waited = come_back(Envelope(None, send.marks, "fresh", NOW), "f", SEAL)
    assert stamp(waited.marks, SEAL)[names.REPLAY] == MARK


def test_it_travels_on_a_letter_that_has_no_other_mark_of_ours() -> None:
    adopted = {names.LETTER: "id", names.REPLAY: MARK, "x-death": [_death("orders")]}
    delivery = dead_lettered(Envelope("id", adopted, "fresh", NOW), "f", SEAL)
    assert delivery.marks.replay == MARK


def test_a_handler_that_takes_it_sends_a_receipt_before_the_acknowledgement() -> None:
    delivery = in_hand(Envelope(None, stamp(MARKS, SEAL), "x", NOW, body=BODY), "f", SEAL, "orders")
    todo = plan(Accept(), delivery, WAYS, SEAL)
    (note,) = todo.sends
    assert (todo.settle, note.to, type(note)) == (Settle.ACK, RECEIPTS, Note)
    assert received(note.marks, SEAL) == ONE


@pytest.mark.parametrize("queue", ["orders", "billing"])
def test_a_copy_earns_no_receipt(queue: str) -> None:
    body = b"another" if queue == "orders" else BODY
    envelope = Envelope(None, stamp(MARKS, SEAL), "x", NOW, body=body)
    assert plan(Accept(), in_hand(envelope, "f", SEAL, queue), WAYS, SEAL) == Plan(Settle.ACK)


def test_a_failure_earns_no_receipt() -> None:
    envelope = Envelope(None, stamp(MARKS, SEAL), "x", NOW, body=BODY)
    delivery = in_hand(envelope, "f", SEAL, "orders").ended(Failed("boom"))
    assert plan(Bury("spent"), delivery, WAYS, SEAL).sends[0].to == Address("d", "k")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {names.REPLAY: MARK},
        {names.REPLAY: MARK, names.SIGNATURE: "0" * 64},
        {names.REPLAY: MARK, names.SIGNATURE: OTHER.prove("handled", MARK)},
        {names.REPLAY: 7, names.SIGNATURE: 7},
    ],
)
def test_a_stranger_writes_no_receipt(headers: dict[str, object]) -> None:
    assert received(headers, SEAL) is None


ERRAND = Errand("orders", MARK, "id")


def test_a_letter_is_sent_back_with_its_count() -> None:
    send = replaying(replace(MARKS, replay="older"), {}, ERRAND, SEAL)
    assert send.to == Address("", "orders")
    assert read(send.marks, SEAL) == MARKS
    assert not send.marks.keys() & {names.REASON, names.ERROR, names.DUE}


def test_or_with_fresh_attempts() -> None:
    known = read(replaying(MARKS, {}, replace(ERRAND, is_fresh=True), SEAL).marks, SEAL)
    assert known == replace(MARKS, retries=0, deaths={})


def test_elsewhere_it_belongs_to_that_queue() -> None:
    known = read(replaying(MARKS, {}, replace(ERRAND, queue="mended"), SEAL).marks, SEAL)
    assert isinstance(known, Marks)
    assert known.origin == Origin("mended", "shop", "order.created")
    delivery = in_hand(Envelope(None, stamp(known, SEAL), "x", NOW), "f", SEAL, "mended")
    assert delivery.retries == 3


def test_a_stranger_s_letter_keeps_its_own_headers_under_names_that_we_use_too() -> None:
    own = {"x-original-exchange": "theirs", "x-retry-count": 5, "x-dlo-flow": "forged", "other": 1}
    assert replaying(ABSENT, own, ERRAND, SEAL).marks == {
        "x-original-exchange": "theirs",
        "x-retry-count": 5,
        names.LETTER: "id",
        names.REPLAY: MARK,
    }


def _death(queue: str) -> dict[str, object]:
    return {
        "queue": queue,
        "exchange": "shop",
        "reason": "rejected",
        "routing-keys": ["order.created"],
        "count": 1,
    }
