"""Routes as the API shows them, and what becomes of a letter by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.core.duration import say
from service.core.policy import FOR_EVER, Policy, policy_for
from service.core.route import ReturnTo, Route, RouteBook
from service.ledger import rows
from service.ledger.route_rows import Stored

MOST_STEPS = 50

Source = Literal["table", "settings", "drill"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds where a route is silent, and the routes that are not in the table."""

    tiers: tuple[timedelta, ...]
    max_retries: int
    fixed: tuple[tuple[Source, RouteBook], ...]

    def policy(self, key: str, route: Route | None) -> Policy:
        """What happens to letters of this key."""
        return policy_for(key, route, self.tiers, self.max_retries)


class RouteLine(BaseModel):
    """A route."""

    name: str | None
    source: Source
    max_retries: int | None = Field(description="null is the default.")
    delays: list[str] = Field(description="Empty is the tiers.")
    return_to: ReturnTo
    says: str = Field(description="What it means, in words.")
    etag: str | None = Field(description="For `If-Match`; null where it is not in the table.")
    complaints: list[str] = Field(description="What the row says wrongly.")


class RouteLines(BaseModel):
    """All routes: the table's first, for they win."""

    items: list[RouteLine]
    next: str | None = None


class NewRoute(BaseModel):
    """A row as it shall be."""

    model_config = ConfigDict(extra="forbid")

    max_retries: Annotated[int, Field(ge=FOR_EVER, le=2**31 - 1)] | None = Field(
        None, description="-1 is without end; null is the default."
    )
    delays: list[Annotated[str, Field(max_length=40)]] = Field(
        [], max_length=50, description="Waits, each one of the tiers.", examples=[["10s", "20s"]]
    )
    return_to: ReturnTo = ReturnTo.QUEUE
    why: Annotated[str, Field(max_length=2_000)] = ""


class Step(BaseModel):
    """A retry: which, after what wait, how long after the first failure."""

    retry: int
    after: str
    at: str


class Tested(BaseModel):
    """What would happen to a letter with this key that always fails."""

    key: str
    route: str | None = Field(description="The name of the route that takes it.")
    source: Source | None
    says: str
    steps: list[Step]
    ends: str


def row_line(stored: Stored, rules: Rules) -> RouteLine:
    """A row of the table, as far as it can be read."""
    reading = rows.read([stored.row], rules.tiers)
    name = stored.row.name if isinstance(stored.row.name, str) else None
    every_ = (*reading.book.exact.values(), *reading.book.patterns)
    route = every_[0] if every_ else Route("")
    line = _line(route, "table", rules, stored.tag, list(reading.complaints))
    return line.model_copy(update={"name": name})


def fixed_lines(rules: Rules) -> Iterable[RouteLine]:
    """The routes that are not in the table."""
    for source, book in rules.fixed:
        for route in (*book.exact.values(), *book.patterns):
            yield _line(route, source, rules, None, [])


def _line(
    route: Route, source: Source, rules: Rules, etag: str | None, complaints: list[str]
) -> RouteLine:
    return RouteLine(
        name=route.name,
        source=source,
        max_retries=route.max_retries,
        delays=[say(delay) for delay in route.delays],
        return_to=route.return_to,
        says=rules.policy(route.name, route).in_words(),
        etag=etag,
        complaints=complaints,
    )


def taker(
    key: str, books: Iterable[tuple[Source, RouteBook]]
) -> tuple[Source | None, Route | None]:
    """The first route that takes a key, and whose it is."""
    for source, book in books:
        if (route := book.find(key)) is not None:
            return source, route
    return None, None


def tested(key: str, source: Source | None, route: Route | None, policy: Policy) -> Tested:
    """What would happen, and when."""
    steps: list[Step] = []
    at, number = timedelta(), 1
    while not policy.hopeless and not policy.is_spent(number - 1) and number <= MOST_STEPS:
        wait = policy.wait_before(number)
        at += wait
        steps.append(Step(retry=number, after=say(wait), at=say(at)))
        number += 1
    return Tested(
        key=key,
        route=route.name if route else None,
        source=source,
        says=policy.in_words(),
        steps=steps,
        ends=_ends(policy, at),
    )


def _ends(policy: Policy, at: timedelta) -> str:
    if policy.hopeless:
        return f"{policy.hopeless}: buried at its first failure"
    if policy.max_retries == FOR_EVER:
        return "retried for ever"
    if policy.max_retries == 0:
        return "buried at its first failure"
    if policy.max_retries > MOST_STEPS:
        return f"buried when all {policy.max_retries} retries have failed"
    tries = "its retry has" if policy.max_retries == 1 else f"{policy.max_retries} retries have"
    return f"buried {say(at)} after its first failure, when {tries} failed"
