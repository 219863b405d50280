"""Every outcome, at every count, has exactly one verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.delivery import Delivery
from service.core.judge import judge
from service.core.marks import Marks, Origin
from service.core.outcome import (
    Done,
    Failed,
    NotYet,
    Outcome,
    Refuse,
    Refused,
    RetryIn,
    TooEarly,
    outcome_of,
)
from service.core.policy import SPENT, Policy, policy_for
from service.core.route import Route
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict, Why

S = timedelta(seconds=1)


class Speechless(Exception):
    """An exception that cannot even say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LADDER = (10 * S, 15 * S, 20 * S)


def delivery(outcome: Outcome, retries: int = 0) -> Delivery:
    """A delivery of a letter that was retried this often."""
    marks = Marks("id", "flow", Origin("orders", "shop", "order.created"), retries, NOW)
    return Delivery(marks, outcome, NOW)


@pytest.mark.parametrize(
    ("outcome", "retries", "verdict"),
    [
        (Done(), 0, Accept()),
        (Done(), 9, Accept()),
        (TooEarly(2 * S), 0, Requeue(pause=2 * S)),
        (Failed("boom"), 0, Retry(1, after=10 * S)),
        (Failed("boom"), 1, Retry(2, after=15 * S)),
        (Failed("boom"), 2, Retry(3, after=20 * S)),
        (Failed("boom"), 3, Bury("failed 4 times: boom")),  # the third retry was the last
        (Failed("boom"), 99, Bury("failed 100 times: boom")),
        (Failed("boom", wish=20 * S), 0, Retry(1, after=20 * S)),
        (Failed("boom", wish=7 * S), 0, Retry(1, after=10 * S)),  # no such wait: the next one
        (TooEarly(2 * S, crowded=True), 1, Retry(1, after=2 * S)),  # no attempt is spent
        (Refused("no"), 0, Bury("refused: no", Why.REFUSED)),
        (Refused("bad header", Why.UNREADABLE), 0, Bury("bad header", Why.UNREADABLE)),
    ],
)
def test_three_retries_on_the_ladder(outcome: Outcome, retries: int, verdict: Verdict) -> None:
    assert judge(delivery(outcome, retries), Policy(LADDER, 3)) == verdict


@pytest.mark.parametrize(
    ("max_retries", "retries", "verdict"),
    [
        (0, 0, Bury("failed once: boom")),
        (1, 0, Retry(1, after=10 * S)),
        (1, 1, Bury("failed 2 times: boom")),
        (5, 3, Retry(4, after=20 * S)),  # past the end of the ladder the last wait repeats
        (5, 4, Retry(5, after=20 * S)),
        (5, 5, Bury("failed 6 times: boom")),
        (-1, 10_000, Retry(10_001, after=20 * S)),
    ],
)
def test_the_limit(max_retries: int, retries: int, verdict: Verdict) -> None:
    assert judge(delivery(Failed("boom"), retries), Policy(LADDER, max_retries)) == verdict


@pytest.mark.parametrize(
    ("retries", "verdict"), [(0, Requeue()), (2, Requeue()), (3, Bury("failed 4 times: boom"))]
)
def test_a_ladder_without_a_wait_means_back_to_the_queue(retries: int, verdict: Verdict) -> None:
    assert judge(delivery(Failed("boom"), retries), Policy((), 3)) == verdict


def test_a_key_without_a_route_is_hopeless() -> None:
    policy = policy_for("order.lost", None, LADDER, 3)
    assert judge(delivery(Failed("boom")), policy) == Bury("no route for order.lost", Why.NO_ROUTE)


@pytest.mark.parametrize(
    ("route", "policy"),
    [
        (Route("k", 2), Policy(LADDER, 2)),
        (Route("k", None), Policy(LADDER, 7)),  # the default of the settings
        (Route("k", 4, delays=(20 * S,)), Policy((20 * S,), 4)),
    ],
)
def test_a_route_with_defaults_where_it_is_silent(route: Route, policy: Policy) -> None:
    assert policy_for("k", route, LADDER, 7) == policy


@given(retries=st.integers(0, 10**9), limit=st.integers(-1, 10**6))
def test_a_failing_letter_is_retried_exactly_while_it_may(retries: int, limit: int) -> None:
    verdict = judge(delivery(Failed("x"), retries), Policy(LADDER, limit))
    assert isinstance(verdict, Retry) == (limit == -1 or retries < limit)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, Done()),
        (Refuse("never"), Refused("never", kind="Refuse")),
        (NotYet(5 * S), TooEarly(5 * S)),
        (NotYet("5s"), TooEarly(5 * S)),
        (NotYet(until=NOW + 7 * S), TooEarly(7 * S)),
        (NotYet(until=NOW - 7 * S), TooEarly(0 * S)),
        (NotYet(until=(NOW + 7 * S).replace(tzinfo=None)), TooEarly(7 * S)),  # naive: taken for UTC
        (Speechless(), Failed("Speechless, which cannot be told", kind="Speechless")),
        (RetryIn("15s"), Failed("asked to be retried in 15s", kind="RetryIn", wish=15 * S)),
        (ValueError("boom"), Failed("boom", kind="ValueError")),
        (KeyError(), Failed("KeyError()", kind="KeyError")),
    ],
)
def test_what_an_exception_says(error: BaseException | None, outcome: Outcome) -> None:
    assert outcome_of(error, NOW) == outcome


def test_a_policy_says_its_rules() -> None:
    assert Policy(LADDER, 3).in_words() == "retried at most 3 times, after 10s, 15s, 20s"
    assert Policy(LADDER, 1).in_words() == "retried once, after 10s, 15s, 20s"
    assert Policy(LADDER, 0).in_words() == "not retried"
    assert Policy(LADDER, -1).in_words() == "retried without end, after 10s, 15s, 20s"


@pytest.mark.parametrize(("ladder", "limit"), [(LADDER, -2)])
def test_a_policy_that_makes_no_sense_is_refused(ladder: tuple[timedelta, ...], limit: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        Policy(ladder, limit)


OFTEN = "failed 3 times: x"
TWICE_THEN_ONCE = Policy((timedelta(),), 2, max_burials=1)


@pytest.mark.parametrize(
    ("outcome", "retries", "kills", "verdict"),
    [
        (Done(), 2, 1, Accept()),
        (Failed("x"), 0, 0, Retry(1, timedelta())),
        (Failed("x"), 1, 1, Retry(2, timedelta())),  # the two counters do not know each other
        (Failed("x"), 2, 0, Bury(OFTEN)),
        (Failed("x"), 2, 1, Discard(f"{OFTEN}; its kills are spent (1 allowed)")),
        (Refused("x"), 0, 0, Bury("refused: x", Why.REFUSED)),
        (Refused("x"), 0, 1, Discard("refused: x; its kills are spent (1 allowed)")),
        (Failed("x"), SPENT, 0, Bury("failed too often: x")),
        (Refused("x"), 0, SPENT, Discard("refused: x; its kills cannot be read (1 allowed)")),
    ],
)
def test_two_counters(outcome: Outcome, retries: int, kills: int, verdict: Verdict) -> None:
    judged = replace(delivery(outcome, retries), kills=kills)
    assert judge(judged, TWICE_THEN_ONCE) == verdict


@pytest.mark.parametrize(
    ("limit", "kills", "verdict"),
    [
        (0, 0, Discard),  # never among the dead letters at all
        (1, 0, Bury),
        (-1, 10_000, Bury),
        (-1, SPENT, Discard),  # a count that cannot be read is spent, whatever the limit
    ],
)
def test_the_limit_of_burials(limit: int, kills: int, verdict: type[Verdict]) -> None:
    judged = replace(delivery(Refused("x")), kills=kills)
    assert isinstance(judge(judged, Policy((S,), 0, max_burials=limit)), verdict)


def test_a_count_that_cannot_be_read_ends_even_endless_retries() -> None:
    assert isinstance(judge(delivery(Failed("x"), SPENT), Policy((S,), -1)), Bury)


def test_other_policies_bury_without_end() -> None:
    judged = replace(delivery(Refused("x")), kills=10_000)
    assert isinstance(judge(judged, Policy((S,), 3)), Bury)
