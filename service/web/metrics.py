"""Metrics: what became of letters, with labels from closed sets only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache, partial

from faststream.asgi import AsgiResponse, get
from faststream.asgi.types import ASGIApp, Scope
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from service.core.delivery import Delivery, Envelope
from service.core.duration import say
from service.core.history import DEATH_REASONS
from service.core.marks import DUE
from service.core.outcome import Failed
from service.core.states import ItemState
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict
from service.ledger.filing import Filed
from service.ledger.parked import Parked
from service.web.tally import Spread, Tally

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
LATE = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0)


class Metrics:
    """Counts verdicts; never a routing key, a queue of others, a cause or an id as a label."""

    def __init__(
        self,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
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
        self._discarded = Tally(
            "dlo_letters_discarded", "Letters dropped on purpose, with a trace", ("flow",), register
        )
        self._returned = Tally(
            "dlo_letters_returned", "Letters returned after their wait", ("flow",), register
        )
        self._filed = Counter(
            "dlo_letters_filed",
            "Dead letters taken into the ledger: new ones, known ones that died again, copies",
            ("flow", "kind"),
            registry=register,
        )
        self._seconds = Spread("dlo_verdict_seconds", "From delivery to settlement", FAST, register)
        self._lateness = Spread(
            "dlo_lateness_seconds", "How much later than due a letter returned", LATE, register
        )

        self._waiting = Gauge(
            "dlo_waiting_letters",
            "Letters that wait for their retry, by how long they wait",
            ("tier",),
            registry=self.registry,
        )

        self._replayed = Counter(
            "dlo_replayed_letters",
            "Letters sent back, and what became of them",
            ("outcome",),
            registry=self.registry,
        )

    def waiting(self, depths: Mapping[str, float]) -> None:
        """How many letters wait now."""
        for tier, letters in depths.items():
            self._waiting.labels(tier).set(letters)

    def watch(self, name: str, help_text: str, is_up: Callable[[], bool]) -> None:
        """A gauge that is 1 while something is up."""
        Gauge(name, help_text, registry=self.registry).set_function(lambda: float(is_up()))

    def measure(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        """A gauge that says what it is asked for."""
        Gauge(name, help_text, registry=self.registry).set_function(value)

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
        self.replayed(ItemState.BACK, filed.back)

    def replayed(self, outcome: ItemState, count: int) -> None:
        """So many letters that were sent back had this result."""
        self._replayed.labels(outcome.value).inc(count)

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        self._received.counts[flow, _death(delivery)] += 1
        self._seconds.observe(flow, (self._clock() - delivery.at).total_seconds())
        match verdict:
            case Retry(_, after):
                self._retries.counts[flow, say(after)] += 1
            case Bury(_, why):
                self._buried.counts[flow, why.value] += 1
            case Discard():
                self._discarded.counts[(flow,)] += 1
            case Accept() | Requeue():
                pass

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        self._returned.counts[(flow,)] += 1
        due = envelope.headers.get(DUE)
        if isinstance(due, int):
            self._lateness.observe(flow, max(0.0, self._clock().timestamp() - due / 1000))


def _parked(look: Callable[[], Parked], flow: str) -> float:
    return look().by_flow.get(flow, 0)


@cache
def metrics_on(registry: CollectorRegistry) -> Metrics:
    """The metrics of a registry that others use too: made once, for it takes no name twice."""
    return Metrics(registry=registry)


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
