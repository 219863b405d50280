"""The running service, over HTTP: every answer is data, or one sentence with its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer

from service.settings import project_root

if TYPE_CHECKING:
    import httpx2

WHOM = "dlo.whom"
NOTE = (".dlo", "office.json")
SECONDS = 30.0

Params = Mapping[str, str | int | float | Sequence[str] | None]


class Exit(IntEnum):
    """What a script reads."""

    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    PARTLY = 5


class Refusal(Exception):
    """The service did not do it: a sentence for people, a code for scripts."""

    def __init__(self, says: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(says)
        self.code = code


@dataclass(frozen=True, slots=True)
class Caller:
    """Speaks to one service."""

    url: str
    token: str = ""

    def get(self, path: str, params: Params | None = None) -> Any:
        """The JSON of a GET."""
        return self._asked("GET", path, params=_given(params or {})).json()

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of a POST."""
        return self.act("POST", path, body, headers)

    def act(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The JSON of a request that changes something; None where the answer is empty."""
        answer = self._asked(method, path, json=body, headers=dict(headers or {}))
        return answer.json() if answer.content else None

    def tag(self, path: str) -> str:
        """The ETag of a resource; empty where there is none."""
        with self._client() as client:
            answer = self._sent(client, "GET", path)
        return "" if answer.status_code == 404 else str(_checked(answer).headers.get("ETag", ""))

    def pages(self, path: str, params: Params, limit: int) -> Iterator[Any]:
        """The items of a list, page after page, up to the limit."""
        cursor, left = None, limit
        while left > 0:
            page = self.get(path, {**params, "limit": min(left, 500), "cursor": cursor})
            yield from page["items"]
            left -= len(page["items"])
            cursor = page["next"]
            if not cursor:
                return

    def download(self, path: str, params: Params | None = None) -> Iterator[bytes]:
        """The bytes of a GET, as they come."""
        import httpx2

        try:
            given = _given(params or {})
            with self._client() as client, client.stream("GET", path, params=given) as answer:
                if answer.is_error:
                    answer.read()
                _checked(answer)
                yield from answer.iter_bytes()
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as fault:
            raise self._unreachable(fault) from None

    def upload(self, path: str, content: Iterator[bytes]) -> Any:
        """Send lines of JSON, as they are read; the JSON of the answer."""
        headers = {"Content-Type": "application/x-ndjson"}
        return self._asked("POST", path, content=content, headers=headers).json()

    def _asked(self, method: str, path: str, **request: Any) -> httpx2.Response:
        with self._client() as client:
            return _checked(self._sent(client, method, path, **request))

    def _sent(
        self, client: httpx2.Client, method: str, path: str, **request: Any
    ) -> httpx2.Response:
        import httpx2

        try:
            return client.request(method, path, **request)
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as fault:
            raise self._unreachable(fault) from None

    def _client(self) -> httpx2.Client:
        import httpx2

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=SECONDS, trust_env=False)

    def _unreachable(self, fault: Exception) -> Refusal:
        import httpx2

        if isinstance(fault, httpx2.TimeoutException):
            return Refusal(
                f"The service at {self.url} did not answer in {SECONDS:g} s; look at /readyz."
            )
        return Refusal(
            f"No service answers at {self.url} ({type(fault).__name__}); start it with `just up`,"
            " or name it with --url or DLO_URL."
        )


def caller(context: typer.Context) -> Caller:
    """Whom this command speaks to: the one named, else the one of this project."""
    named: Whom = context.meta.get(WHOM, Whom())
    url, token = named.url or _note() or _by_settings(), named.token.strip()
    if not url.startswith(("http://", "https://")):
        raise Refusal(f"{url!r} is no address: write one like http://127.0.0.1:8000.", Exit.USAGE)
    if not token.isascii() or not token.isprintable():
        raise Refusal("The token has characters that no token has; check DLO_TOKEN.", Exit.USAGE)
    return Caller(url, token)


@dataclass(frozen=True, slots=True)
class Whom:
    """What --url and --token said."""

    url: str = ""
    token: str = ""


def _note() -> str:
    """Where `just up` serves in this project, if it does."""
    try:
        said = json.loads(project_root().joinpath(*NOTE).read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    link = said.get("link") if isinstance(said, dict) else None
    return link if isinstance(link, str) else ""


def _by_settings() -> str:
    from service.settings import load

    web = load().web
    return f"http://{web.host}:{web.port}"


def _given(params: Params) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value not in (None, "", ())}


def _checked(answer: httpx2.Response) -> httpx2.Response:
    """The answer, if it is one; a problem is a sentence."""
    if answer.is_success:
        return answer
    raise Refusal(_said(answer), _code(answer.status_code))


def _said(answer: httpx2.Response) -> str:
    try:
        problem = answer.json()
        parts = (f"{problem['title']}: {problem['detail']}", problem.get("hint", ""))
        return " ".join(
            part if part.endswith((".", "?", "!")) else f"{part}." for part in parts if part
        )
    except (ValueError, KeyError, TypeError):
        return f"The service answered {answer.status_code}; is this a Dead Letter Office?"


def _code(status: int) -> Exit:
    match status:
        case 401 | 403:
            return Exit.NOT_ALLOWED
        case 404:
            return Exit.NOT_FOUND
        case 400 | 422:
            return Exit.USAGE
        case _:
            return Exit.FAILED
