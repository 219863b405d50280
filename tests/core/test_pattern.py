"""A pattern says of another letter what judge and plan would have said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Seal
from service.core.pattern import Pattern
from service.core.plan import plan
from service.core.route import Route
from service.flows.dlq_processor.policy import Rules, flow

NOW = datetime(2024, 2, 29, 12, 0, 0, 123_456, tzinfo=UTC)
TIERS = (timedelta(seconds=10), timedelta(seconds=15))
IDS = some.text(min_size=1, max_size=20)
MOMENTS = some.datetimes(timezones=some.just(UTC), min_value=datetime(2000, 1, 1))
ROUTES = {"retried": Route("retried", 3), "spent": Route("spent", 0)}


def envelope(letter: str, at: datetime, key: str, queue: str = "orders") -> Envelope:
    """A letter as it comes the first time."""
    death = {"queue": queue, "exchange": "shop", "routing-keys": [key], "reason": "expired"}
    return Envelope(letter, {"x-death": [death]}, letter, at)


@pytest.mark.parametrize("key", ["retried", "spent", "unheard-of"])
@pytest.mark.parametrize("queue", ["orders", "retry-queue"])  # nothing fails in a queue of ours
@pytest.mark.parametrize("seal", [Seal(), Seal(b"a key for the tests")], ids=["bare", "signed"])
@given(first=IDS, letter=IDS, at=MOMENTS)
def test_another_letter_that_failed_alike(
    key: str, queue: str, seal: Seal, first: str, letter: str, at: datetime
) -> None:
    processor = flow(Rules(TIERS, 3), ROUTES.get, seal)
    policy = processor.policy(key)

    def by_itself(name: str, when: datetime):  # type: ignore[no-untyped-def]  # three values
        delivery = processor.count(envelope(name, when, key, queue))
        verdict = judge(delivery, policy)
        return delivery, verdict, plan(verdict, delivery, processor.ways, seal)

    one, verdict, todo = by_itself(first, NOW)
    pattern = Pattern.of(one, policy, verdict, todo, seal)
    assert pattern is not None
    delivery, expected, planned = by_itself(letter, at)
    assert pattern.verdict == expected
    assert pattern.another(letter, at) == (delivery, planned)
    (again,) = pattern.another(letter, at)[1].sends
    assert list(again.marks) == list(planned.sends[0].marks)  # in the same order on the wire


def test_a_changed_route_is_another_policy() -> None:
    routes = dict(ROUTES)
    processor = flow(Rules(TIERS, 3), routes.get, Seal())
    before = processor.policy("retried")
    assert processor.policy("retried") is before
    routes["retried"] = Route("retried", 1)
    assert processor.policy("retried").max_retries == 1
    del routes["retried"]
    assert processor.policy("retried").hopeless
