"""`/api/v1/routes`: which routing keys are retried; rows of `dlq_event_config` and of the settings."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, assert_never

from fastapi import APIRouter, Header, Path, Query, Response

from service.core.duration import parse, say
from service.core.route import Route
from service.ledger import rows
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.route_rows import (
    Changed,
    Made,
    NoRoute,
    Removed,
    Stale,
    Unseen,
    every,
    find,
    put,
    remove,
)
from service.web.api.asking import Short
from service.web.api.letters import Clock, Who, utc_now
from service.web.api.route_shapes import (
    NewRoute,
    RouteLine,
    RouteLines,
    Rules,
    Source,
    Tested,
    fixed_lines,
    row_line,
    taker,
    tested,
)
from service.web.problems import Problem, documented

__all__ = ["Rules", "Source", "router"]

PATH = "/api/v1/routes"
NAME = r"^[^\x00-\x1f\x7f]{1,255}$"

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
    str | None, Query(max_length=255, pattern=r"^[^\x00]*$", description="A routing key.")
]


def router(book: Book, rules: Rules, clock: Clock = utc_now) -> APIRouter:
    """Everything about routes."""
    routes = APIRouter(prefix=PATH, tags=["routes"])
    _reading(routes, book, rules)
    _writing(routes, book, rules, clock)
    return routes


def _reading(routes: APIRouter, book: Book, rules: Rules) -> None:
    @routes.get("", responses=documented(401, 403, 503))
    async def list_() -> RouteLines:
        """Every route: rows of the table, then those of the settings."""
        table = [row_line(stored, rules) for stored in await every(book)]
        return RouteLines(items=[*table, *fixed_lines(rules)])

    async def row(name: str, response: Response) -> RouteLine:
        stored = await find(book, name)
        if isinstance(stored, NoRoute):
            raise _unknown()
        response.headers["ETag"] = f'"{stored.tag}"'
        return row_line(stored, rules)

    @routes.get("/test", responses=documented(401, 403, 404, 422, 503))
    async def test(response: Response, key: KeyAsked = None) -> Tested | RouteLine:
        """Which route takes a key, and what would happen when to a letter that always fails; without
        a key, the row of this name."""
        if key is None:
            return await row("test", response)
        reading = rows.read((stored.row for stored in await every(book)), rules.tiers)
        source, route = taker(key, (("table", reading.book), *rules.fixed))
        return tested(key, source, route, rules.policy(key, route))

    @routes.get("/{name:path}", responses=documented(401, 403, 404, 422, 503))
    async def show(name: RouteName, response: Response) -> RouteLine:
        """One row of the table."""
        return await row(name, response)


def _writing(routes: APIRouter, book: Book, rules: Rules, clock: Clock) -> None:
    writing = documented(401, 403, 412, 413, 422, 428, 503)

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
        return row_line(stored, rules)

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
