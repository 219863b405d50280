"""Metrics: what became of letters, with labels from closed sets only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from faststream.asgi import AsgiResponse, get
from faststream.asgi.types import ASGIApp, Scope
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from service.core.delivery import Delivery, Envelope
from service.core.duration import say
from service.core.history import DEATH_REASONS
from service.core.marks import DUE
from service.core.outcome import Failed
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict
from service.web.tally import Spread, Tally

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
LATE = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)


class Metrics:
    """Counts verdicts; never a routing key, a queue of others, a cause or an id as a label."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        register = self.registry
        self._received = Tally(
            "dlo_letters_received",
            "Failed letters that arrived, by how they died",
            ("flow", "reason"),
            register,
        )
        self._retries = Tally(
            "dlo_retries_scheduled", "Retries scheduled", ("flow", "tier"), register
        )
        self._buried = Tally(
            "dlo_letters_buried", "Letters buried, by why", ("flow", "reason"), register
        )
        self._returned = Tally(
            "dlo_letters_returned", "Letters returned after their wait", ("flow",), register
        )
        self._seconds = Spread("dlo_verdict_seconds", "From delivery to settlement", FAST, register)
        self._lateness = Spread(
            "dlo_lateness_seconds", "How much later than due a letter returned", LATE, register
        )

    def watch(self, name: str, help_text: str, is_up: Callable[[], bool]) -> None:
        """A gauge that is 1 while something is up."""
        Gauge(name, help_text, registry=self.registry).set_function(lambda: float(is_up()))

    def measure(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        """A gauge that says what it is asked for."""
        Gauge(name, help_text, registry=self.registry).set_function(value)

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        self._received.counts[flow, _death(delivery)] += 1
        self._seconds.observe(flow, (self._clock() - delivery.at).total_seconds())
        match verdict:
            case Retry(_, after):
                self._retries.counts[flow, say(after)] += 1
            case Bury(_, why):
                self._buried.counts[flow, why.value] += 1
            case Accept() | Requeue() | Discard():
                pass

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        self._returned.counts[(flow,)] += 1
        due = envelope.headers.get(DUE)
        if isinstance(due, int):
            self._lateness.observe(flow, max(0.0, self._clock().timestamp() - due / 1000))


def metrics_route(metrics: Metrics) -> ASGIApp:
    """`GET /metrics`."""

    @get
    async def exposition(scope: Scope) -> AsgiResponse:
        body = generate_latest(metrics.registry)
        return AsgiResponse(body, 200, headers={"content-type": CONTENT_TYPE_LATEST})

    return exposition


def _death(delivery: Delivery) -> str:
    match delivery.outcome:
        case Failed(_, kind) if kind in DEATH_REASONS:
            return kind
        case _:
            return "other"
