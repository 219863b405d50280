"""Routes: which routing keys are retried, how often, after which waits, and where they return to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from service.core.topic import is_pattern, matches, vagueness


class ReturnTo(StrEnum):
    """Where a letter goes after its wait."""

    QUEUE = "queue"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class Route:
    """A row of `dlq_event_config`, or an entry of `[routes]`."""

    name: str
    max_retries: int | None = None
    delays: tuple[timedelta, ...] = ()
    return_to: ReturnTo = ReturnTo.QUEUE


@dataclass(frozen=True, slots=True)
class RouteBook:
    """Routes of one source, ready to be asked: an exact name first, then the most specific pattern."""

    exact: Mapping[str, Route] = field(default_factory=dict)
    patterns: tuple[Route, ...] = ()

    @staticmethod
    def of(routes: Iterable[Route]) -> RouteBook:
        """The first of two routes with one name counts."""
        named: dict[str, Route] = {}
        for route in routes:
            named.setdefault(route.name, route)
        patterns = sorted(
            (r for r in named.values() if is_pattern(r.name)), key=lambda r: vagueness(r.name)
        )
        return RouteBook({n: r for n, r in named.items() if not is_pattern(n)}, tuple(patterns))

    def find(self, key: str) -> Route | None:
        """The route that takes this routing key, if any."""
        if (route := self.exact.get(key)) is not None:
            return route
        for route in self.patterns:
            if matches(route.name, key):
                return route
        return None


def find_route(key: str, books: Iterable[RouteBook]) -> Route | None:
    """The first book that knows the key decides: the table before the settings."""
    for book in books:
        if (route := book.find(key)) is not None:
            return route
    return None
