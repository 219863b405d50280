"""What becomes of a settlement, by what RabbitMQ counted; and what stands on the broker for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from faststream.rabbit import QueueType

from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Seal
from service.core.outcome import Done, Failed, Outcome, Refused
from service.core.plan import Address, Plan, Settle, plan
from service.core.verdict import Accept, Bury, Requeue, Verdict, Why
from service.flows.settlement import topology as tables
from service.flows.settlement.policy import Rules, burial, died, flow
from service.topology.faults import faults

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SEAL = Seal(b"a key for the tests, long enough")
SETTLEMENT = flow(tables.REQUESTED, Rules(), SEAL)
BOOM = Failed("no money", "BankFailed")


def delivered(count: int | None, *, redelivered: bool = True) -> Envelope:
    headers = {} if count is None else {"x-delivery-count": count}
    return Envelope("m1", headers, "m1", NOW, "settlement.requested", "tx", redelivered)


@pytest.mark.parametrize(
    ("count", "redelivered", "outcome", "verdict"),
    [
        (None, False, Done(), Accept()),
        (None, False, BOOM, Requeue()),
        (1, True, BOOM, Requeue()),
        (2, True, BOOM, Requeue()),
        (3, True, BOOM, Bury("failed 4 times: no money", Why.SPENT)),
        (3, True, Done(), Accept()),  # the fourth attempt may work, too
        (7, True, BOOM, Bury("failed 8 times: no money", Why.SPENT)),
        (3, False, BOOM, Requeue()),  # a sender's own count
        (None, False, Refused("no body"), Bury("refused: no body", Why.REFUSED)),
    ],
)
def test_the_settlement_policy(
    count: int | None, redelivered: bool, outcome: Outcome, verdict: Verdict
) -> None:
    delivery = SETTLEMENT.count(delivered(count, redelivered=redelivered)).ended(outcome)
    assert judge(delivery, SETTLEMENT.policy("tx")) == verdict


def planned(count: int | None) -> Plan:
    delivery = SETTLEMENT.count(delivered(count)).ended(BOOM)
    verdict = judge(delivery, SETTLEMENT.policy("tx"))
    return plan(verdict, delivery, SETTLEMENT.ways, SEAL)


def test_a_failure_goes_back_and_the_last_one_is_sent_before_it_is_acknowledged() -> None:
    assert planned(2) == Plan(Settle.REQUEUE)
    last = planned(3)
    assert (last.settle, last.sends[0].to) == (
        Settle.ACK,
        Address("dlq.settlement.requested", "tx"),
    )
    marks = last.sends[0].marks
    assert (marks["x-retry-count"], marks["x-dlo-error-type"]) == (3, "BankFailed")
    assert marks["x-dlo-reason"] == "failed 4 times: no money"
    assert marks["x-original-queue"] == "settlement.requested.worker"


def dead(reason: str) -> Envelope:
    death: dict[str, Any] = {"queue": "settlement.requested.worker", "reason": reason, "count": 1}
    death |= {"exchange": "settlement.requested", "routing-keys": ["tx"]}
    return Envelope("m1", {"x-death": [death]}, "m1", NOW)


@pytest.mark.parametrize(
    ("envelope", "attempts", "verdict"),
    [
        (
            dead("expired"),
            0,
            Bury("expired in settlement.requested.worker, untried", Why.EXPIRED),
        ),
        (
            dead("delivery_limit"),
            4,
            Bury(
                "delivered too often from settlement.requested.worker, after 4 attempts",
                Why.DELIVERY_LIMIT,
            ),
        ),
        (Envelope("m1", dict(planned(3).sends[0].marks), "m1", NOW), 4, None),  # ours: told already
        (Envelope("m1", {}, "m1", NOW), 0, None),  # a stranger put it there
    ],
    ids=["expired", "crashed", "spent", "stranger"],
)
def test_what_the_monitor_reads_in_a_dead_letter(
    envelope: Envelope, attempts: int, verdict: Bury | None
) -> None:
    assert burial(died(envelope, SEAL), attempts) == verdict


@pytest.mark.parametrize("kind", [QueueType.CLASSIC, QueueType.QUORUM])
def test_the_topology_has_no_fault_and_the_documents_arguments(kind: QueueType) -> None:
    topology = tables.tables(3, timedelta(minutes=5), kind)
    sends = [(exchange, "tx") for exchange in topology.exchanges]
    assert faults(topology, sends) == ()
    assert dict(topology.queue("settlement.requested.worker").arguments) == {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "dlq.settlement.requested",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-message-ttl": 300_000,
        "x-delivery-limit": 3,
    }
    assert {exchange.name for exchange in topology.exchanges} >= {
        *("transaction.created", "settlement.requested", "dlq.settlement.requested"),
    }


def test_no_ttl_is_no_argument() -> None:
    queue = tables.worker_queue(tables.REQUESTED, 3, timedelta())
    assert "x-message-ttl" not in queue.arguments
