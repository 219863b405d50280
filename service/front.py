"""The front office: the HTTP API behind its guard, each router handed what it needs."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import assert_never

from fastapi import APIRouter

from service.archive import Archive
from service.core.route import RouteBook, find_route
from service.core.standing import Absent, Sight, Standing, Unseen
from service.edge.fields import decode_table
from service.edge.looking import look_at
from service.edge.rewriting import rewrite
from service.edge.sentences import place
from service.flows.dlq_processor import drill
from service.flows.dlq_processor.policy import NAME as PROCESSOR
from service.ledger import adopted as ledger
from service.ledger.book import Book
from service.ledger.figures import pulse
from service.ledger.letters import Letter
from service.ledger.routes import Routes
from service.sends import sends_of
from service.settings import Settings
from service.settings.auth import TokenSetting
from service.topology.faults import faults
from service.topology.tables import Topology
from service.web.access import Person, Role
from service.web.api import (
    adopted,
    audit,
    causes,
    create_api,
    events,
    letter_acts,
    letter_copies,
    letters,
    routes,
    status,
    topology,
)
from service.web.api.why import Rule
from service.web.farewell import Farewell
from service.web.guard import Door, Guard, Loopback, Proxy, Token, Tokens
from service.web.health import Check
from service.web.streams import Streams


@dataclass(frozen=True, slots=True)
class Front:
    """The API behind its guard, and those who listen for changes."""

    guard: Guard
    streams: Streams
    farewell: Farewell

    def open(self) -> None:
        """The service starts."""
        self.farewell.listen()

    async def close(self) -> None:
        """The service ends: no stream keeps it waiting."""
        self.farewell.forget()
        await self.streams.end()


def open_front(
    settings: Settings,
    archive: Archive,
    snapshot: Routes,
    tables: Topology,
    checks: Mapping[str, Check],
    others: Iterable[APIRouter],
    version: str,
) -> Front:
    """Everything the service answers over HTTP but health and metrics; `others` bring their routers."""
    streams = Streams(lambda: pulse(archive.book), checks)
    ours = routers(settings, archive, snapshot, tables, checks, streams, version)
    api = create_api((*others, *ours), version)
    return Front(Guard(api, door_of(settings)), streams, Farewell(streams.close))


def routers(
    settings: Settings,
    archive: Archive,
    snapshot: Routes,
    tables: Topology,
    checks: Mapping[str, Check],
    streams: Streams,
    version: str,
) -> Iterator[APIRouter]:
    """Every router but those of the rooms and of the replays."""
    book, may_edit = archive.book, settings.ledger.edit
    rules = route_rules(settings)
    ours = frozenset(queue.name for queue in tables.queues)
    # Export and import before /letters/{id}, which would take their names for ids.
    yield letter_copies.router(book, longest_line(settings))
    desk = letters.Desk(decode_table, rewrite, _rule(rules, snapshot), may_edit)
    yield letters.router(book, desk)
    yield letter_acts.router(book, desk)
    yield causes.router(book)
    yield audit.router(book)
    yield routes.router(book, rules)
    yield topology.router(tables, faults(tables, sends_of(settings)))
    yield adopted.router(Adopting(book, settings, ours, archive.wrong_with))
    yield events.router(streams)
    yield status.router(book, checks, version, may_edit=may_edit)


def door_of(settings: Settings) -> Door:
    """How people come in."""
    own = settings.auth
    match own.mode:
        case "none":
            return Loopback()
        case "token":
            return Tokens(tuple(map(_token, own.tokens)))
        case "proxy":
            networks = tuple(ipaddress.ip_network(address) for address in own.trusted)
            return Proxy(own.proxy_header, own.proxy_role_header, networks)
        case never:
            assert_never(never)


def _token(setting: TokenSetting) -> Token:
    given = setting.token.get_secret_value().encode() if setting.token else b""
    known = setting.sha256.get_secret_value() if setting.sha256 else ""
    digest = bytes.fromhex(known) if known else sha256(given).digest()
    return Token(Person(setting.name, Role(setting.role)), digest)


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
    ours: frozenset[str]
    wrong_with: Callable[[str], str]
    """What keeps letters of a queue that stands from the ledger; empty where nothing does."""

    async def every(self) -> Sequence[adopted.Adopted]:
        """All of them, the settings' first."""
        named = [adopted.Adopted(entry.queue, "settings") for entry in self.settings.adopt]
        every = named + [
            adopted.Adopted(one.queue, "operator", one.who, one.adopted_at)
            for one in await ledger.adopted(self.book)
        ]
        url = self.settings.rabbit.url.get_secret_value()
        seen = await look_at(url, (one.queue for one in every)) if every else {}
        return [replace(one, says=self._says(one.queue, seen[one.queue])) for one in every]

    def _says(self, queue: str, sight: Sight) -> str:
        match sight:
            case Absent():
                where = place(self.settings.rabbit.url.get_secret_value())
                return f"there is no queue {queue} on {where}; it is taken from once there is"
            case Unseen(why):
                return why
            case Standing():
                return self.wrong_with(queue)
            case never:
                assert_never(never)

    async def adopt(self, queue: str, who: str, why: str) -> str:
        """Take a queue in."""
        if queue in self.ours:
            return f"{queue} is a queue of this service's own."
        if queue in {entry.queue for entry in self.settings.adopt}:
            return f"{queue} is adopted in the settings already."
        await ledger.adopt(self.book, queue, who, datetime.now(UTC), why)
        return ""

    async def release(self, queue: str, who: str, why: str) -> bool:
        """Take no more letters from it."""
        return await ledger.leave(self.book, queue, who, datetime.now(UTC), why)
