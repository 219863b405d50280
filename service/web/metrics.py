"""Metrics: what became of letters, with labels from closed sets only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from faststream.asgi import AsgiResponse, get
from faststream.asgi.types import ASGIApp, Scope
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from service.core.delivery import Delivery, Envelope
from service.core.duration import say
from service.core.history import DEATH_REASONS
from service.core.marks import DUE
from service.core.outcome import Failed
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict

Family = TypeVar("Family", Counter, Histogram)
FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
LATE = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)


class Metrics:
    """Counts verdicts; never a routing key, a queue of others, a cause or an id as a label."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        # Finding a series by its labels costs more than counting; there are few, and they stay.
        self._series = lru_cache(maxsize=512)(_find_series)
        self._received = Counter(
            "dlo_letters_received",
            "Failed letters that arrived, by how they died",
            ("flow", "reason"),
            registry=self.registry,
        )
        self._retries = Counter(
            "dlo_retries_scheduled", "Retries scheduled", ("flow", "tier"), registry=self.registry
        )
        self._buried = Counter(
            "dlo_letters_buried",
            "Letters buried, by why",
            ("flow", "reason"),
            registry=self.registry,
        )
        self._returned = Counter(
            "dlo_letters_returned",
            "Letters returned after their wait",
            ("flow",),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "dlo_verdict_seconds",
            "From delivery to settlement",
            ("flow",),
            buckets=FAST,
            registry=self.registry,
        )
        self._lateness = Histogram(
            "dlo_lateness_seconds",
            "How much later than due a letter returned",
            ("flow",),
            buckets=LATE,
            registry=self.registry,
        )

    def watch(self, name: str, help_text: str, is_up: Callable[[], bool]) -> None:
        """A gauge that is 1 while something is up."""
        Gauge(name, help_text, registry=self.registry).set_function(lambda: float(is_up()))

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        series = self._series
        series(self._received, flow, _death(delivery)).inc()
        series(self._seconds, flow).observe((self._clock() - delivery.at).total_seconds())
        match verdict:
            case Retry(_, after):
                series(self._retries, flow, say(after)).inc()
            case Bury(_, why):
                series(self._buried, flow, why.value).inc()
            case Accept() | Requeue() | Discard():
                pass

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        self._series(self._returned, flow).inc()
        due = envelope.headers.get(DUE)
        if isinstance(due, int):
            late = self._clock().timestamp() - due / 1000
            self._series(self._lateness, flow).observe(max(0.0, late))


def _find_series(metric: Family, *labels: str) -> Family:
    return metric.labels(*labels)


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
