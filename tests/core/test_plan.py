"""Plans: send all, then settle once, last; what cannot be returned is buried."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.core import marks as names
from service.core.delivery import Delivery
from service.core.marks import Marks, Origin, Seal, read
from service.core.outcome import Done, Failed
from service.core.plan import Address, Plan, Publish, Reject, Settle, Ways, plan, returning
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEAL = Seal(b"sixteen bytes and more")
MARKS = Marks("id", "f", Origin("orders", "shop", "order.created"), 1, NOW)
DELIVERY = Delivery(MARKS, Failed("boom", kind="ValueError"), NOW)
PUBLISHING = Ways(
    retry=Publish(lambda _, verdict: Address("wait", str(getattr(verdict, "number", "")))),
    bury=Publish(lambda *_: Address("dead", "letters")),
)
AGAIN = timedelta(seconds=15)
REJECTING = Ways(retry=Reject(), bury=Reject())


@pytest.mark.parametrize(
    ("verdict", "settle", "sends"),
    [
        (Accept(), Settle.ACK, 0),
        (Discard("kills spent"), Settle.ACK, 0),
        (Requeue(), Settle.REQUEUE, 0),
        (Retry(2, timedelta(seconds=5)), Settle.ACK, 1),
        (Bury("spent"), Settle.ACK, 1),
    ],
)
def test_each_verdict_settles_once(verdict: Verdict, settle: Settle, sends: int) -> None:
    todo = plan(verdict, DELIVERY, PUBLISHING, SEAL)
    assert (todo.settle, len(todo.sends), todo.otherwise) == (settle, sends, None)


@pytest.mark.parametrize("verdict", [Retry(2, timedelta(seconds=5)), Bury("spent")])
def test_the_broker_may_carry_a_letter_itself(verdict: Verdict) -> None:
    assert plan(verdict, DELIVERY, REJECTING, SEAL) == Plan(Settle.REJECT)


def test_a_retry_carries_the_next_count_the_error_and_the_due_time() -> None:
    send = plan(Retry(2, timedelta(seconds=5)), DELIVERY, PUBLISHING, SEAL).sends[0]
    assert send.to == Address("wait", "2")
    assert send.marks[names.RETRY_COUNT] == 2
    assert (send.marks[names.ERROR], send.marks[names.ERROR_TYPE]) == ("boom", "ValueError")
    assert send.marks[names.DUE] == (NOW.timestamp() + 5) * 1000
    assert isinstance(read(send.marks, SEAL), Marks)


def test_a_burial_carries_its_reason_and_the_count_so_far() -> None:
    send = plan(Bury("failed 2 times: boom"), DELIVERY, PUBLISHING, SEAL).sends[0]
    assert send.to == Address("dead", "letters")
    assert (send.marks[names.REASON], send.marks[names.RETRY_COUNT]) == ("failed 2 times: boom", 1)


def test_a_wait_that_spends_no_attempt_may_have_a_way_of_its_own() -> None:
    ways = Ways(Reject(), Reject(), defer=Publish(lambda *_: Address("wait", "here")))
    deferred = plan(Retry(1, timedelta(seconds=5)), DELIVERY, ways, SEAL)
    assert deferred.sends[0].marks[names.RETRY_COUNT] == 1
    assert plan(Retry(2, timedelta(seconds=5)), DELIVERY, ways, SEAL) == Plan(Settle.REJECT)


def test_a_flow_may_stamp_marks_of_its_own() -> None:
    bury = Publish(lambda *_: Address("d", "k"), also=lambda *_: {names.FINAL_STATUS: 503})
    todo = plan(Bury("spent"), DELIVERY, Ways(Reject(), bury), SEAL)
    assert todo.sends[0].marks[names.FINAL_STATUS] == 503


def test_a_pause_is_part_of_the_plan() -> None:
    pause = timedelta(seconds=3)
    assert plan(Requeue(pause), DELIVERY, PUBLISHING, SEAL).pause == pause


def test_a_letter_whose_wait_is_over_goes_back_with_its_count() -> None:
    todo = returning(DELIVERY.ended(Done()), Address("", "orders"), PUBLISHING, SEAL, AGAIN)
    assert todo.sends[0].to == Address("", "orders")
    assert read(todo.sends[0].marks, SEAL) == MARKS
    assert names.ERROR not in todo.sends[0].marks


def test_if_its_queue_refuses_it_for_now_it_waits_again_without_spending_an_attempt() -> None:
    later = returning(DELIVERY.ended(Done()), Address("", "orders"), PUBLISHING, SEAL, AGAIN).later
    assert later is not None
    assert read(later.sends[0].marks, SEAL) == MARKS
    assert later.sends[0].marks[names.DUE] == (NOW.timestamp() + 15) * 1000


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        (Address("", "orders"), "nobody takes it any more at queue orders"),
        (
            Address("shop", "order.created"),
            "nobody takes it any more at exchange shop with key order.created",
        ),
    ],
)
def test_if_nobody_is_there_any_more_it_is_buried(to: Address, reason: str) -> None:
    burial = returning(DELIVERY.ended(Done()), to, PUBLISHING, SEAL, AGAIN).otherwise
    assert burial is not None
    assert burial.sends[0].to == Address("dead", "letters")
    assert burial.sends[0].marks[names.REASON] == reason


def test_what_is_discarded_leaves_a_copy_where_the_flow_has_a_way_for_it() -> None:
    skipped = replace(PUBLISHING, discard=Publish(lambda *_: Address("", "skipped")))
    todo = plan(Discard("kills spent"), DELIVERY, skipped, SEAL)
    (send,) = todo.sends
    assert (todo.settle, send.to) == (Settle.ACK, Address("", "skipped"))
    assert send.marks[names.REASON] == "kills spent"
    assert send.marks[names.ERROR] == "boom"
    assert read(send.marks, SEAL) == MARKS
