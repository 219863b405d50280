"""A shop's order as it fails, waits, returns and dies: examples that the flow itself has written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import RETRY_COUNT, Seal
from service.core.plan import plan
from service.core.route import Route
from service.edge.pages import Example
from service.flows.dlq_processor.policy import FindRoute, Rules, flow, send_back
from service.flows.flow import Flow

Headers = Mapping[str, object]

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
ORDER = "order-42"
BODY = '{"order": 42, "total": "19.90"}'
TENANT: Headers = {"tenant": "north"}
REJECTED: Headers = {
    "x-death": [
        {
            "queue": "orders",
            "reason": "rejected",
            "exchange": "shop",
            "routing-keys": ["order.created"],
            "count": 1,
        }
    ]
}


def _office(find: FindRoute) -> Flow:
    tiers = tuple(timedelta(seconds=wait) for wait in (10, 15, 20))
    return flow(Rules(tiers, max_retries=3), find, Seal(b"the key of the examples"))


ROUTED = _office({"order.created": Route("order.created", max_retries=2)}.get)
UNROUTED = _office(lambda _key: None)


def _failed(headers: Headers, office: Flow = ROUTED) -> Headers:
    """What the order carries on after a consumer of `orders` rejected it."""
    delivery = office.count(Envelope(ORDER, {**headers, **REJECTED}, ORDER, NOON))
    verdict = judge(delivery, office.policy(delivery.origin.routing_key))
    return plan(verdict, delivery, office.ways, office.seal).sends[0].marks


def _returned(waiting: Headers) -> Headers:
    """What it carries when it is back in `orders`."""
    _, back = send_back(Envelope(ORDER, waiting, ORDER, NOON), ROUTED, lambda _key: None)
    assert back is not None  # its marks are our own
    return back.sends[0].marks


def _example(name: str, summary: str, headers: Headers) -> Example:
    return Example(name, summary, {**TENANT, **headers}, BODY)


_once = _failed({})
_again = _returned(_once)
_twice = _failed(_again)
_spent = _failed(_returned(_twice))

DEAD_LETTERED = (
    _example("first-failure", "Rejected by a consumer of orders for the first time", REJECTED),
    _example("second-failure", "Rejected again after its first retry", {**_again, **REJECTED}),
)
WAITING = (
    _example("before-retry-1", "Waiting ten seconds for its first retry", _once),
    _example("before-retry-2", "Waiting fifteen seconds for its second retry", _twice),
)
RETURNED = (_example("retry-1", "An order that comes back to orders for the first time", _again),)
DEAD = (
    _example("retries-spent", "Both retries of its route were made in vain", _spent),
    _example("no-route", "Nobody said that this routing key is retried", _failed({}, UNROUTED)),
)
DRILL = (
    _example("first-delivery", "As it was sent", {}),
    _example("retried", "As it comes back", {RETRY_COUNT: 1}),
)
