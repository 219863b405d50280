"""The guard at the door of the API: nobody comes in unknown, nobody acts who may only look."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from hashlib import sha256
from typing import assert_never
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.core.loopback import address_of, host_in, is_loopback
from service.web.access import NOBODY_IN_PARTICULAR, Person, Role
from service.web.problems import Problem, answer_of

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITE = frozenset({"same-origin", "none"})
FORWARDED = "x-forwarded-for"
PASSED_ON = frozenset({"forwarded", "via", "x-real-ip"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Loopback:
    """No login: whoever is on this machine is an operator."""


@dataclass(frozen=True, slots=True)
class Token:
    """Whose token, what for, and its sha256."""

    person: Person
    digest: bytes


@dataclass(frozen=True, slots=True)
class Tokens:
    """`Authorization: Bearer …`."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy has asked who it is, and says so in a header; believed only from these addresses."""

    header: str
    role_header: str
    trusted: tuple[Network, ...]


Door = Loopback | Tokens | Proxy


class Guard:
    """Lets a request in, with its person, or answers it with a problem."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self.sees_peers = False
        """Whether `client` is who really connected: uvicorn would put a forwarded address there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whatever is no HTTP request is the application's to refuse: it has nothing else."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            person = self._admit(scope)
        except Problem as problem:
            await answer_of(problem)(scope, receive, send)
            return
        scope["state"] = {**scope.get("state", {}), "person": person}
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> Person:
        headers = Headers(scope=scope)
        person = self._person(scope, headers)
        if scope["method"] not in SAFE:
            _same_site(headers)
            if person.role is not Role.OPERATOR:
                raise _only_looking(person)
        return person

    def _person(self, scope: Scope, headers: Headers) -> Person:
        match self._door:
            case Loopback():
                return _on_this_machine(scope, headers)
            case Tokens(tokens):
                return _with_token(tokens, headers)
            case Proxy() as proxy:
                if FORWARDED in headers and not self.sees_peers:
                    raise _hidden_peer()
                return _through(proxy, scope, headers)
            case never:
                assert_never(never)


def _on_this_machine(scope: Scope, headers: Headers) -> Person:
    """Asked for by name as well: a page elsewhere may have its name lead to this machine. And by
    nobody else's hand: behind a proxy on this machine is the world."""
    server = scope.get("server")
    if not server or not is_loopback(server[0]):
        raise _no_login("This address is not loopback")
    if not is_loopback(host_in(headers.get("host", ""))):
        raise _no_login("The Host header does not name this machine")
    passed = [name for name in headers if name in PASSED_ON or name.startswith("x-forwarded-")]
    if passed:
        raise _no_login(f"A proxy has passed the request on ({passed[0]})")
    return NOBODY_IN_PARTICULAR


def _with_token(tokens: tuple[Token, ...], headers: Headers) -> Person:
    """Every token is compared, each in the same time."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    digest = sha256(given.strip().encode("utf-8", "replace")).digest()
    found = [token for token in tokens if hmac.compare_digest(token.digest, digest)]
    if scheme.lower() != "bearer" or not found:
        raise _no_token()
    return found[0].person


def _through(proxy: Proxy, scope: Scope, headers: Headers) -> Person:
    client = scope.get("client")
    address = address_of(client[0]) if client else None
    if address is None or not any(address in network for network in proxy.trusted):
        raise _not_the_proxy()
    names = headers.getlist(proxy.header)
    if len(names) != 1 or not names[0].strip():
        raise _nobody(proxy.header)
    operator = headers.getlist(proxy.role_header) == [Role.OPERATOR.value]
    return Person(names[0].strip()[:100], Role.OPERATOR if operator else Role.VIEWER)


def _same_site(headers: Headers) -> None:
    """A browser says where a request comes from; a program says nothing. An older browser names the
    page's origin alone, and a proxy may have put another Host beside it."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        is_ours = site in OWN_SITE
    else:
        is_ours = origin is None or _place(origin) == headers.get("host", "").lower()
    if not is_ours:
        raise _foreign_site()


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _no_login(what: str) -> Problem:
    return Problem(
        403,
        "Nobody is let in here without a login",
        f"{what}, and auth.mode is none.",
        hint='Ask at 127.0.0.1, or set auth.mode to "token" or "proxy".',
    )


def _no_token() -> Problem:
    hint = "Send `Authorization: Bearer …` with a token of auth.tokens; `dlo` takes DLO_TOKEN."
    problem = Problem(401, "Who are you?", "There is no token, or none that is known.", hint=hint)
    problem.headers = {"WWW-Authenticate": "Bearer"}
    return problem


def _not_the_proxy() -> Problem:
    hint = "Come through the proxy, or add its address to auth.trusted."
    return Problem(403, "This is not the proxy", "The address is not trusted.", hint=hint)


def _nobody(header: str) -> Problem:
    hint = f"The proxy must send {header} once, with a name, and drop what its clients send."
    return Problem(401, "Who are you?", f"There is no one {header} with a name.", hint=hint)


def _hidden_peer() -> Problem:
    return Problem(
        403,
        "The proxy cannot be told apart",
        "This server may have replaced the address that connected by a forwarded one.",
        hint="Start the service with `faststream run`, one process, which keeps it.",
    )


def _only_looking(person: Person) -> Problem:
    hint = "Ask an operator, or use an operator's token."
    return Problem(403, "Viewers only look", f"{person.name} is a viewer.", hint=hint)


def _foreign_site() -> Problem:
    hint = "Only pages of this service, and programs, may change something here."
    return Problem(403, "The request comes from another site", "It was not done.", hint=hint)
