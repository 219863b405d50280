"""Metrics: what became of letters, with labels from closed sets only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

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
from service.ledger.filing import Filed
from service.ledger.parked import Parked

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
LATE = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)


class Metrics:
    """Counts verdicts; never a routing key, a queue of others, a cause or an id as a label."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
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
        self._filed = Counter(
            "dlo_letters_filed",
            "Dead letters taken into the ledger: new ones, known ones that died again, copies",
            ("flow", "kind"),
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

    def parked(
        self, flows: Iterable[str], look: Callable[[], Parked], age: Callable[[], float]
    ) -> None:
        """Gauges of the letters that need somebody, as they were when last looked at."""
        letters = Gauge(
            "dlo_parked_letters",
            "Letters in the ledger that need somebody",
            ("flow",),
            registry=self.registry,
        )
        for flow in flows:
            letters.labels(flow).set_function(partial(_parked, look, flow))
        oldest = Gauge(
            "dlo_oldest_parked_age_seconds",
            "Since the oldest of them was buried",
            registry=self.registry,
        )
        oldest.set_function(age)

    def filed(self, flow: str, filed: Filed) -> None:
        """Letters are in the ledger."""
        for kind, count in (("new", filed.new), ("again", filed.again), ("copy", filed.copies)):
            self._filed.labels(flow, kind).inc(count)

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        self._received.labels(flow, _death(delivery)).inc()
        self._seconds.labels(flow).observe((self._clock() - delivery.at).total_seconds())
        match verdict:
            case Retry(_, after):
                self._retries.labels(flow, say(after)).inc()
            case Bury(_, why):
                self._buried.labels(flow, why.value).inc()
            case Accept() | Requeue() | Discard():
                pass

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        self._returned.labels(flow).inc()
        due = envelope.headers.get(DUE)
        if isinstance(due, int):
            late = self._clock().timestamp() - due / 1000
            self._lateness.labels(flow).observe(max(0.0, late))


def _parked(look: Callable[[], Parked], flow: str) -> float:
    return look().by_flow.get(flow, 0)


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
