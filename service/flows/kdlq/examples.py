"""An order as it is redelivered, killed and skipped: examples that the flow itself has written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Seal
from service.core.outcome import Failed, Outcome, Refused
from service.core.plan import plan
from service.edge.pages import Example
from service.flows.kdlq.policy import Rules, flow
from service.flows.kdlq.topology import SKIPPED, Names

Headers = Mapping[str, object]

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
RULES = Rules(Names("orders", "orders.dlq"), "shop.orders:handle", 3, 1, skipped=SKIPPED)
FLOW = flow(RULES, "orders", Seal(b"the key of the examples"))
ORDER, BODY = "order-7", '{"order": 7}'
TENANT: Headers = {"tenant": "north"}


def _sent(headers: Headers, outcome: Outcome) -> Headers:
    """What the message carries after it is sent on with this outcome."""
    delivery = FLOW.count(Envelope(ORDER, headers, ORDER, NOON, "shop", "order.created"))
    delivery = delivery.ended(outcome)
    verdict = judge(delivery, FLOW.policy(""))
    return plan(verdict, delivery, FLOW.ways, FLOW.seal).sends[0].marks


def _example(name: str, summary: str, headers: Headers) -> Example:
    return Example(name, summary, {**TENANT, **headers}, BODY)


_early = Failed("not replicated yet", kind="MustBeRedelivered")
_wrong = Refused("no such article", kind="KeyError")
_once = _sent({}, _early)
_dead = _sent(_once, _wrong)

MESSAGES = (
    _example("as-published", "As its sender published it", {}),
    _example("redelivered", "Redelivered once", _once),
)
DEAD = (_example("killed", "The handler failed after one redelivery", _dead),)
SKIPPED_ONES = (
    _example("skipped", "It failed again when the DLQ was processed", _sent(_dead, _wrong)),
)
