"""A warehouse's event as it fails, waits and dies: examples that the flow itself has written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Seal
from service.core.outcome import Failed, Outcome, TooEarly
from service.core.plan import plan
from service.edge.pages import Example
from service.flows.event_bus import topology as tables
from service.flows.event_bus.policy import Rules, flow

Headers = Mapping[str, object]

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
SERVICE = "wms-cincout"
QUEUE = tables.work_name(SERVICE)
RULES = Rules(max_retries=10, retry_after=timedelta(seconds=5))
FLOW = flow(SERVICE, RULES, Seal(b"the key of the examples"))
EVENT = "stock-42"
BODY = '{"stock": 42, "moved": 7}'
TENANT: Headers = {"tenant": "north"}


def _deaths(count: int) -> Headers:
    """What RabbitMQ has written after so many rounds."""
    main, retry = tables.main_exchange(SERVICE).name, tables.retry_exchange(SERVICE).name
    waited = (tables.retry_name(SERVICE), "expired", retry, [tables.RETRY_KEY])
    rejected = (QUEUE, "rejected", main, ["stock.moved"])
    names = ("queue", "reason", "exchange", "routing-keys")
    return {
        "x-death": [
            {**dict(zip(names, death, strict=True)), "count": count} for death in (waited, rejected)
        ]
    }


def _sent(headers: Headers, outcome: Outcome) -> Headers:
    """What the event carries after it is sent on with this outcome."""
    delivery = FLOW.count(Envelope(EVENT, headers, EVENT, NOON, "", QUEUE)).ended(outcome)
    verdict = judge(delivery, FLOW.policy(""))
    return plan(verdict, delivery, FLOW.ways, FLOW.seal).sends[0].marks


def _example(name: str, summary: str, headers: Headers) -> Example:
    return Example(name, summary, {**TENANT, **headers}, BODY)


_early = TooEarly(RULES.retry_after, crowded=True)
_unavailable = Failed(
    "HTTP 503 Service Unavailable: maintenance", kind="503 Service Unavailable", status=503
)
_silent = Failed("no answer within 30s", kind="TimeoutError")

EVENTS = (
    _example("as-published", "As the producer published it", {}),
    _example("second-retry", "Rejected twice, back from its second wait", _deaths(2)),
)
WAITING = (_example("too-early", "Answered 425 after two retries", _sent(_deaths(2), _early)),)
DEAD = (
    _example("status", "Answered 503 eleven times", _sent(_deaths(10), _unavailable)),
    _example("no-answer", "No answer in time at the last attempt", _sent(_deaths(10), _silent)),
)
