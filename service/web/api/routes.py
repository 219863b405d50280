"""`/api/v1/routes`: which routing keys are retried; rows of `dlq_event_config` and of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, assert_never

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from service.core.duration import parse, say
from service.core.policy import FOR_EVER, Policy, policy_for
from service.core.route import ReturnTo, Route, RouteBook
from service.ledger import rows
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.route_rows import (
    Changed,
    Made,
    NoRoute,
    Removed,
    Stale,
    Stored,
    Unseen,
    every,
    find,
    put,
    remove,
)
from service.web.api.asking import Short
from service.web.api.letters import Clock, Who, utc_now
from service.web.problems import Problem, documented

PATH = "/api/v1/routes"
NAME = r"^[^\x00-\x1f\x7f]{1,255}$"
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


RouteName = Annotated[str, Path(description="A routing key or pattern.", pattern=NAME), Short]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=200,
        description="The etag that was seen. Needed where the row is there already.",
    ),
]
KeyAsked = Annotated[
    str, Query(max_length=255, pattern=r"^[^\x00]*$", description="A routing key.")
]


def router(book: Book, rules: Rules, clock: Clock = utc_now) -> APIRouter:
    """Everything about routes."""
    routes = APIRouter(prefix=PATH, tags=["routes"])
    writing = documented(401, 403, 412, 413, 422, 428, 503)

    @routes.get("", responses=documented(401, 403, 503))
    async def list_() -> RouteLines:
        """Every route: rows of the table, then those of the settings."""
        table = [_row_line(stored, rules) for stored in await every(book)]
        return RouteLines(items=[*table, *_fixed_lines(rules)])

    @routes.get("/test", responses=documented(401, 403, 422, 503))
    async def test(key: KeyAsked) -> Tested:
        """Which route takes a key, and what would happen when to a letter that always fails."""
        reading = rows.read((stored.row for stored in await every(book)), rules.tiers)
        source, route = _taker(key, (("table", reading.book), *rules.fixed))
        return _tested(key, source, route, rules.policy(key, route))

    @routes.get("/{name:path}", responses=documented(401, 403, 404, 422, 503))
    async def show(name: RouteName, response: Response) -> RouteLine:
        """One row of the table."""
        stored = await find(book, name)
        if isinstance(stored, NoRoute):
            raise _unknown()
        response.headers["ETag"] = f'"{stored.tag}"'
        return _row_line(stored, rules)

    @routes.put(
        "/{name:path}",
        responses={201: {"model": RouteLine, "description": "Made."}, **writing},
    )
    async def put_(
        name: RouteName, wanted: NewRoute, who: Who, response: Response, seen: IfMatch = None
    ) -> RouteLine:
        """Make a row of the table, or change it where it is still as it was seen."""
        route = Route(name, wanted.max_retries, _delays(wanted.delays, rules), wanted.return_to)
        deed = Deed(who.name, "route.put", f"route:{name}", 1, wanted.why)
        match await put(book, route, _tag(seen), deed, clock()):
            case Made(stored):
                response.status_code = 201
            case Changed(stored):
                pass
            case Unseen() | Stale() as refusal:
                raise _refusal(refusal)
            case never:
                assert_never(never)
        response.headers["ETag"] = f'"{stored.tag}"'
        return _row_line(stored, rules)

    @routes.delete("/{name:path}", status_code=204, responses={**writing, **documented(404)})
    async def delete(name: RouteName, who: Who, seen: IfMatch = None) -> Response:
        """Drop a row of the table, where it is still as it was seen."""
        deed = Deed(who.name, "route.remove", f"route:{name}")
        match await remove(book, name, _tag(seen), deed, clock()):
            case Removed():
                return Response(status_code=204)
            case NoRoute():
                raise _unknown()
            case Unseen() | Stale() as refusal:
                raise _refusal(refusal)
            case never:
                assert_never(never)

    return routes


def _row_line(stored: Stored, rules: Rules) -> RouteLine:
    reading = rows.read([stored.row], rules.tiers)
    name = stored.row.name if isinstance(stored.row.name, str) else None
    every_ = (*reading.book.exact.values(), *reading.book.patterns)
    route = every_[0] if every_ else Route("")
    line = _line(route, "table", rules, stored.tag, list(reading.complaints))
    return line.model_copy(update={"name": name})


def _fixed_lines(rules: Rules) -> Iterable[RouteLine]:
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


def _taker(
    key: str, books: Iterable[tuple[Source, RouteBook]]
) -> tuple[Source | None, Route | None]:
    for source, book in books:
        if (route := book.find(key)) is not None:
            return source, route
    return None, None


def _tested(key: str, source: Source | None, route: Route | None, policy: Policy) -> Tested:
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
    if policy.max_retries > MOST_STEPS:
        return f"buried when all {policy.max_retries} retries have failed"
    return (
        f"buried {say(at)} after its first failure, when {policy.max_retries} retries have failed"
    )


def _delays(texts: list[str], rules: Rules) -> tuple[timedelta, ...]:
    try:
        delays = tuple(map(parse, texts))
    except (ValueError, OverflowError):
        delays = (timedelta(-1),)
    if any(delay not in rules.tiers for delay in delays):
        known = ", ".join(map(say, rules.tiers))
        raise Problem(
            422,
            "A wait that nothing keeps",
            "Each of `delays` must be one of the tiers.",
            hint=f"The tiers are {known}; a wait is a queue that stands or does not.",
        )
    return delays


def _tag(header: str | None) -> str | None:
    return None if header is None else header.strip().removeprefix("W/").strip('"')


def _refusal(refusal: Unseen | Stale) -> Problem:
    if isinstance(refusal, Unseen):
        hint = "Read the route, then send its etag as If-Match."
        return Problem(428, "The route is there already", "Nothing was changed.", hint=hint)
    hint = "Read the routes again, decide again, and send the new etag as If-Match."
    return Problem(412, "Somebody was quicker", "The row is not as it was seen.", hint=hint)


def _unknown() -> Problem:
    hint = f"GET {PATH} lists them; those of the settings are changed in the settings."
    return Problem(404, "No such route", "The table has no row of this name.", hint=hint)
