"""FreeFlow's answers, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from faststream.rabbit import QueueType

from service.core.delivery import Delivery, Envelope
from service.core.judge import judge
from service.core.marks import Marks, Origin, Seal, stamp
from service.core.outcome import Done, Failed, Outcome, Refused, TooEarly
from service.core.plan import Address, plan
from service.core.route import ReturnTo
from service.core.verdict import Accept, Bury, Retry, Verdict, Why
from service.flows.freeflow import topology as tables
from service.flows.freeflow.policy import Rules, flow, heard
from service.settings.freeflow import DOMAINS, TIERS
from service.topology.faults import faults
from service.topology.tables import DEFAULT

S, M = timedelta(seconds=1), timedelta(minutes=1)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEAL = Seal(b"sixteen bytes and more")
SCALED = Rules(waits=(1 * S, 2 * S, 3 * S))
DOCUMENTS = flow("document", Rules(), SEAL)


def delivery(outcome: Outcome, retries: int = 0) -> Delivery:
    """A delivery of a document that was retried this often."""
    origin = Origin("freeflow.document", "freeflow.events", "document.created")
    return Delivery(Marks("id", "freeflow", origin, retries, NOW), outcome, NOW)


@pytest.mark.parametrize(
    ("outcome", "retries", "verdict"),
    [
        (Done(), 0, Accept()),
        (Failed("boom"), 0, Retry(1, after=30 * S)),
        (Failed("boom"), 1, Retry(2, after=5 * M)),
        (Failed("boom"), 2, Retry(3, after=30 * M)),
        (Failed("boom"), 3, Bury("failed 4 times: boom")),
        (Failed("boom", wish=5 * M), 0, Retry(1, after=5 * M)),
        (Failed("boom", wish=5 * M), 3, Bury("failed 4 times: boom")),
        (Failed("boom", wish=7 * M), 1, Retry(2, after=5 * M)),  # no such tier: the next one
        (Refused("no"), 0, Bury("refused: no", Why.REFUSED)),
        (TooEarly(7 * M), 1, Retry(1, after=5 * M)),  # no attempt is spent
        (TooEarly(1 * S), 0, Retry(0, after=30 * S)),
        (TooEarly(24 * 60 * M), 0, Retry(0, after=30 * M)),
    ],
)
def test_the_ladder(outcome: Outcome, retries: int, verdict: Verdict) -> None:
    ended = delivery(heard(outcome, Rules()), retries)
    assert judge(ended, DOCUMENTS.policy("document.created")) == verdict


@pytest.mark.parametrize(
    ("outcome", "understood"),
    [
        (Failed("boom", wish=5 * M), Failed("boom", wish=2 * S)),  # a tier is meant by its name
        (
            Failed("boom", wish=2 * S),
            Failed("boom; there is no tier 2s (30s, 5m, 30m), so the next one was taken"),
        ),
        (Failed("boom"), Failed("boom")),
        (TooEarly(5 * S), TooEarly(3 * S, crowded=True)),
    ],
)
def test_what_a_handler_asks_for_when_the_waits_are_scaled(
    outcome: Outcome, understood: Outcome
) -> None:
    assert heard(outcome, SCALED) == understood


@pytest.mark.parametrize(("number", "tier"), [(1, "30s"), (2, "5m"), (3, "30m")])
@pytest.mark.parametrize("rules", [Rules(), SCALED], ids=["as written", "scaled"])
def test_a_retry_goes_to_the_queue_of_its_tier(rules: Rules, number: int, tier: str) -> None:
    retry = Retry(number, rules.waits[number - 1])
    todo = plan(retry, delivery(Failed("x")), flow("document", rules, SEAL).ways, SEAL)
    assert [send.to for send in todo.sends] == [
        Address("freeflow.events.retry", f"document.{tier}")
    ]


@pytest.mark.parametrize(("domain", "tier"), [("invoice", "30s"), ("document", "7m")])
def test_a_domain_or_a_tier_that_does_not_exist_is_an_error(domain: str, tier: str) -> None:
    with pytest.raises(LookupError, match=f"no retry queue for {domain}.{tier}"):
        tables.retry_address(domain, tier)


def test_a_letter_that_is_back_has_its_first_address_also_where_it_did_not_fail() -> None:
    origin = Origin("search.documents", "freeflow.events", "document.created")
    worn = stamp(Marks("m", "freeflow", origin, 2, NOW), SEAL)
    back = Envelope("m", worn, "m", NOW, "freeflow.events", "document.retry")
    counted = DOCUMENTS.count(back)
    assert counted.origin == Origin("freeflow.document", "freeflow.events", "document.created")
    assert counted.retries == 0
    stranger = Envelope("m", {**worn, "x-retry-count": 9}, "m", NOW, "e", "document.retry")
    assert DOCUMENTS.count(stranger).origin.routing_key == "document.retry"


@pytest.mark.parametrize("kind", [QueueType.CLASSIC, QueueType.QUORUM])
@pytest.mark.parametrize("return_to", ReturnTo)
def test_the_topology_has_no_faults(kind: QueueType, return_to: ReturnTo) -> None:
    topology = Rules(kind=kind, return_to=return_to).topology
    sends = [(to.exchange, to.routing_key) for to in tables.sends()]
    assert len(sends) == 7 * (2 + 3)
    assert faults(topology, sends) == ()
    assert len([queue for queue in topology.queues if ".retry." in queue.name]) == 21


def test_the_queue_alternative_goes_through_the_default_exchange() -> None:
    queue = Rules(return_to=ReturnTo.QUEUE).topology.queue("freeflow.user.retry.5m")
    assert queue.arguments["x-dead-letter-exchange"] == DEFAULT.name
    assert queue.arguments["x-dead-letter-routing-key"] == "freeflow.user"
    assert queue.arguments["x-message-ttl"] == 300_000


def test_the_settings_know_the_same_names() -> None:
    assert (DOMAINS, TIERS) == (tables.DOMAINS, tables.TIERS)
