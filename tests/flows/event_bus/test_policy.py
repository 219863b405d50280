"""The event bus's count, verdicts and ways, as tables; no broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from faststream.rabbit import QueueType

from service.core import marks as names
from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Marks, Origin, Seal, stamp
from service.core.outcome import Done, Failed, Outcome, Refused, TooEarly
from service.core.plan import Address, Plan, Settle, plan
from service.core.verdict import Accept, Bury, Requeue, Retry, Verdict, Why
from service.flows.event_bus import topology as tables
from service.flows.event_bus.policy import NAME, Rules, flow
from service.topology.faults import faults

S = timedelta(seconds=1)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEAL = Seal(b"a key for the tests, long enough")
SERVICE, WORK, WAIT = "wms-cincout", "wms.queue.wms-cincout", "wms.retry-queue.wms-cincout"
FLOW = flow(SERVICE, Rules(10, 5 * S), SEAL)
ORIGIN = Origin(WORK, "wms.main-exchange", "stock.moved")
FAILURE = Failed("HTTP 503 Service Unavailable", "503 Service Unavailable", status=503)
ONE_SERVICE = (
    ("exchange", "wms.main-exchange", "fanout"),
    ("exchange", "wms.retry-exchange.wms-cincout", "direct"),
)


def deaths(count: int) -> dict[str, Any]:
    """What the broker writes after so many rounds."""
    rejected = {"queue": WORK, "reason": "rejected", "exchange": "wms.main-exchange"}
    waited = {"queue": WAIT, "reason": "expired", "exchange": "wms.retry-exchange.wms-cincout"}
    first = {"count": count, "time": NOW - 60 * S}
    return {
        "x-death": [
            {**waited, **first, "routing-keys": ["retry"]},
            {**rejected, **first, "routing-keys": ["stock.moved"]},
        ]
    }


def envelope(headers: dict[str, Any], *, back: bool = True) -> Envelope:
    """A letter as it is in the service's queue: back from its wait, or fresh."""
    address = ("", WORK) if back else ("wms.main-exchange", "stock.moved")
    return Envelope("m1", headers, "fresh", NOW, *address)


@pytest.mark.parametrize(
    ("service", "prefix"),
    [("wms-cincout", "wms"), ("xyz-service", "xyz"), ("noprefix", "default"), ("a-b-c", "a")],
)
def test_the_prefix(service: str, prefix: str) -> None:
    assert tables.prefix_of(service) == prefix


def test_the_tables_of_the_document() -> None:
    topology = tables.tables(("wms-cincout",), 5 * S, QueueType.CLASSIC)
    assert [("exchange", e.name, e.type.value) for e in topology.exchanges] == [*ONE_SERVICE]
    assert {queue.name: dict(queue.arguments) for queue in topology.queues} == {
        WORK: {
            "x-queue-type": "classic",
            "x-dead-letter-exchange": "wms.retry-exchange.wms-cincout",
            "x-dead-letter-routing-key": "retry",
        },
        WAIT: {
            "x-queue-type": "classic",
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": WORK,
            "x-message-ttl": 5000,
        },
        "wms.dlq.wms-cincout": {"x-queue-type": "classic"},
    }
    assert [(b.exchange.name, b.queue.name, b.key) for b in topology.bindings] == [
        ("wms.main-exchange", WORK, ""),
        ("wms.retry-exchange.wms-cincout", WAIT, "retry"),
    ]


@pytest.mark.parametrize("kind", [QueueType.CLASSIC, QueueType.QUORUM])
def test_two_services_of_a_prefix_share_the_main_exchange_and_nothing_is_wrong(
    kind: QueueType,
) -> None:
    services = ("wms-cincout", "wms-stock", "noprefix")
    topology = tables.tables(services, 5 * S, kind)
    sends = [(tables.retry_exchange(name).name, "retry") for name in services]
    sends += [("", tables.dead_name(name)) for name in services]
    assert faults(topology, sends) == ()
    assert len(topology.exchanges) == 5
    assert len(topology.queues) == 9


def test_no_letter_is_given_up_by_a_quorum_queue() -> None:
    """At its limit it would go round without a rejection, and RabbitMQ drops such a letter."""
    topology = tables.tables((SERVICE,), 5 * S, QueueType.QUORUM)
    assert [queue.arguments["x-delivery-limit"] for queue in topology.queues] == [100_000] * 3


def test_the_broker_counts_and_vouches_for_the_origin() -> None:
    delivery = FLOW.count(envelope(deaths(3)))
    assert (delivery.retries, delivery.origin, delivery.at) == (3, ORIGIN, NOW)
    assert delivery.marks.first_failure == NOW - 60 * S
    assert delivery.marks.deaths == {"rejected": 3}


def test_our_mark_goes_on_with_the_count_where_we_published_it() -> None:
    mark = stamp(Marks("m1", NAME, ORIGIN, 4, NOW - 90 * S), SEAL)
    assert FLOW.count(envelope(dict(mark))).retries == 4
    both = FLOW.count(envelope({**mark, **deaths(3)}))
    assert (both.retries, both.origin) == (7, ORIGIN)
    assert both.marks.first_failure == NOW - 90 * S


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "nothing happened yet"),
        (deaths(9), "a producer copied the headers of a letter that had failed here"),
        (stamp(Marks("m1", NAME, ORIGIN, 9, NOW), Seal(b"another key")), "not our signature"),
        (stamp(Marks("other", NAME, ORIGIN, 9, NOW), SEAL), "another letter's"),
        (stamp(Marks("m1", "other", ORIGIN, 9, NOW), SEAL), "another flow's"),
    ],
)
def test_a_fresh_letter_begins_at_zero(headers: dict[str, Any], why: str) -> None:
    delivery = FLOW.count(envelope(headers, back=False))
    assert (delivery.retries, delivery.origin) == (0, ORIGIN), why


@pytest.mark.parametrize(
    ("outcome", "retries", "verdict", "settle"),
    [
        (Done(), 3, Accept(), Settle.ACK),
        (FAILURE, 0, Retry(1, 5 * S), Settle.REJECT),
        (FAILURE, 9, Retry(10, 5 * S), Settle.REJECT),
        (FAILURE, 10, Bury(f"failed 11 times: {FAILURE.error}"), Settle.ACK),
        (Refused("no", status=404), 0, Bury("refused: no", Why.REFUSED), Settle.ACK),
        (TooEarly(2 * S), 10, Requeue(2 * S), Settle.REQUEUE),
        (TooEarly(5 * S, crowded=True), 10, Retry(10, 5 * S), Settle.ACK),
    ],
)
def test_each_outcome_has_its_verdict(
    outcome: Outcome, retries: int, verdict: Verdict, settle: Settle
) -> None:
    delivery = FLOW.count(envelope(deaths(retries) if retries else {})).ended(outcome)
    assert judge(delivery, FLOW.policy("any")) == verdict
    assert plan(verdict, delivery, FLOW.ways, SEAL).settle is settle


def test_a_rejection_carries_nothing_for_the_broker_counts() -> None:
    delivery = FLOW.count(envelope({})).ended(FAILURE)
    assert plan(Retry(1, 5 * S), delivery, FLOW.ways, SEAL) == Plan(Settle.REJECT)


def test_a_letter_put_off_goes_to_the_retry_queue_with_its_count() -> None:
    delivery = FLOW.count(envelope(deaths(2))).ended(TooEarly(5 * S, crowded=True))
    (send,) = plan(Retry(2, 5 * S), delivery, FLOW.ways, SEAL).sends
    assert send.to == Address("wms.retry-exchange.wms-cincout", "retry")
    assert FLOW.count(envelope(dict(send.marks))).retries == 2
    assert names.FINAL_RETRIES not in send.marks


def test_a_dead_letter_has_the_four_headers() -> None:
    delivery = FLOW.count(envelope(deaths(10))).ended(FAILURE)
    (send,) = plan(Bury("spent"), delivery, FLOW.ways, SEAL).sends
    assert send.to == Address("", "wms.dlq.wms-cincout")
    assert {name: send.marks[name] for name in send.marks if "final" in name} == {
        "x-final-status-code": 503,
        "x-final-error": "HTTP 503 Service Unavailable",
        "x-final-retry-count": 10,
    }
    assert send.marks["x-original-queue"] == WORK


def test_the_final_error_fits_and_a_missing_status_is_left_out() -> None:
    delivery = FLOW.count(envelope({})).ended(Failed("é" * 5000, "ConnectError"))
    marks = plan(Bury("spent"), delivery, FLOW.ways, SEAL).sends[0].marks
    assert len(str(marks["x-final-error"]).encode()) <= 1024
    assert "x-final-status-code" not in marks
