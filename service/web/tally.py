"""Counting that costs next to nothing: plain numbers, put into Prometheus' words when somebody asks.

prometheus_client takes a lock for every number and finds it by its labels each time: several
microseconds for a letter. All our counting happens on the one loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class Tally(Collector):
    """How often, by labels."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self.counts: defaultdict[tuple[str, ...], int] = defaultdict(int)
        registry.register(self)

    def collect(self) -> Iterable[CounterMetricFamily]:
        """As they stand now."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in self.counts.items():
            family.add_metric(labels, count)
        yield family


class Spread(Collector):
    """How long, by flow: a count for each bucket, and the sum."""

    def __init__(
        self, name: str, text: str, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._buckets = name, text, buckets
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(buckets) + 1))
        self._sums: defaultdict[str, float] = defaultdict(float)
        registry.register(self)

    def observe(self, flow: str, seconds: float) -> None:
        """One more."""
        self._counts[flow][bisect_left(self._buckets, seconds)] += 1
        self._sums[flow] += seconds

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """As they stand now; Prometheus wants each bucket with all smaller ones in it."""
        family = HistogramMetricFamily(self._name, self._text, labels=("flow",))
        limits = [*map(str, self._buckets), "+Inf"]
        for flow, counts in self._counts.items():
            sums = [sum(counts[: n + 1]) for n in range(len(counts))]
            family.add_metric((flow,), [*zip(limits, sums, strict=True)], self._sums[flow])
        yield family
