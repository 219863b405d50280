"""For every flow: a letter sent back with its count gets one attempt, with fresh ones the whole ladder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Marks, Origin, Seal
from service.core.outcome import Failed
from service.core.plan import Errand, replaying
from service.core.route import Route
from service.core.verdict import Bury
from service.flows.dlq_processor import policy as processor
from service.flows.event_bus import policy as bus
from service.flows.flow import Flow
from service.flows.freeflow import policy as freeflow
from service.flows.settlement import policy as settlement
from service.flows.settlement.topology import REQUESTED

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEAL = Seal(b"sixteen bytes and more")
SECOND = timedelta(seconds=1)
FLOWS: dict[str, tuple[Flow, int]] = {
    "orders": (
        processor.flow(processor.Rules((SECOND,), 3), lambda key: Route(key, 3), SEAL),
        3,
    ),
    "freeflow.user": (freeflow.flow("user", freeflow.Rules(), SEAL), 3),
    "settlement.requested.worker": (settlement.flow(REQUESTED, settlement.Rules(), SEAL), 3),
    "wms.queue.wms-one": (bus.flow("wms-one", bus.Rules(10, SECOND), SEAL), 10),
}


@pytest.mark.parametrize("queue", FLOWS)
@pytest.mark.parametrize("fresh", [False, True])
def test_the_count_of_a_letter_that_was_sent_back(queue: str, fresh: bool) -> None:
    flow, spent = FLOWS[queue]
    dead = Marks("id", flow.name, Origin(queue, "x", "order.created"), spent, NOW, {"rejected": 4})
    sent = replaying(dead, {}, Errand(queue, "", "id", fresh), SEAL)
    died = [{"queue": queue, "exchange": "", "reason": "rejected", "routing-keys": [queue]}]
    headers = {**sent.marks, **({"x-death": died} if queue == "orders" else {})}
    came = Envelope("id", headers, "fresh", NOW, sent.to.exchange, sent.to.routing_key)
    delivery = flow.count(came)
    assert (delivery.marks.letter, delivery.origin) == ("id", dead.origin)
    assert delivery.retries == (0 if fresh else spent)
    verdict = judge(delivery.ended(Failed("boom")), flow.policy("order.created"))
    assert isinstance(verdict, Bury) is not fresh
