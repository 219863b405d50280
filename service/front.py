"""The front office: the routers of the HTTP API, each handed what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import APIRouter

from service.core.route import RouteBook, find_route
from service.edge.fields import decode_table
from service.edge.rewriting import rewrite
from service.flows.dlq_processor import drill
from service.flows.dlq_processor.policy import NAME as PROCESSOR
from service.ledger import adopted as ledger
from service.ledger.book import Book
from service.ledger.letters import Letter
from service.ledger.moments import utc
from service.ledger.routes import Routes
from service.settings import Settings
from service.topology.faults import faults
from service.topology.tables import Topology
from service.web.api import (
    adopted,
    audit,
    causes,
    letter_copies,
    letters,
    routes,
    status,
    topology,
)
from service.web.api.why import Rule
from service.web.health import Check


def routers(
    settings: Settings,
    book: Book,
    snapshot: Routes,
    tables: Topology,
    checks: Mapping[str, Check],
    version: str,
) -> Iterator[APIRouter]:
    """Every router but those of the rooms."""
    may_edit = False  # ledger.edit
    rules = route_rules(settings)
    # Export and import before /letters/{id}, which would take their names for ids.
    yield letter_copies.router(book, longest_line(settings))
    yield letters.router(
        book, letters.Desk(decode_table, rewrite, _rule(rules, snapshot), may_edit)
    )
    yield causes.router(book)
    yield audit.router(book)
    yield routes.router(book, rules)
    yield topology.router(tables, faults(tables))
    yield adopted.router(Adopting(book, settings))
    yield status.router(book, checks, version, may_edit=may_edit)


def route_rules(settings: Settings) -> routes.Rules:
    """What holds for routing keys beside the table."""
    own = settings.dlq_processor
    fixed: list[tuple[routes.Source, RouteBook]] = [("settings", settings.route_book())]
    if own.drill:
        fixed.append(("drill", drill.ROUTES))
    return routes.Rules(own.tiers, own.max_retries, tuple(fixed))


def longest_line(settings: Settings) -> int:
    """The largest letter that was ever retried, in base64, and room for the rest of its line."""
    return settings.limits.max_body * 4 // 3 + settings.limits.max_headers * 4 + 256 * 1024


def _rule(rules: routes.Rules, snapshot: Routes) -> Rule:
    """What the route of a letter of the central processor allows."""

    def said(letter: Letter) -> str:
        if letter.flow != PROCESSOR:
            return ""
        key = letter.routing_key
        route = find_route(key, (snapshot.book, *(book for _, book in rules.fixed)))
        if route is None:
            return f"no route takes `{key}`"
        return f"route `{route.name}`: {rules.policy(key, route).in_words()}"

    return said


@dataclass(frozen=True, slots=True)
class Adopting:
    """Adopted queues: those of the settings, and those of operators."""

    book: Book
    settings: Settings

    async def every(self) -> Sequence[adopted.Adopted]:
        """All of them, the settings' first."""
        return [
            adopted.Adopted(one.queue, "operator", one.who, utc(one.adopted_at))
            for one in await ledger.adopted(self.book)
        ]

    async def adopt(self, queue: str, who: str, why: str) -> str:
        """Take a queue in."""
        await ledger.adopt(self.book, queue, who, datetime.now(UTC), why)
        return ""

    async def release(self, queue: str, who: str, why: str) -> bool:
        """Take no more letters from it."""
        return await ledger.leave(self.book, queue, who, datetime.now(UTC), why)
