"""The HTTP door: an event is POSTed to the service's endpoint, and the answer is the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

import httpx2

from service.core import duration
from service.core import marks as names
from service.core.outcome import Failed
from service.flows.desk import utc_now
from service.flows.event_bus.event import Door, Event, Reply
from service.flows.event_bus.statuses import Answer, outcome_of, pause_of

LONGEST_ANSWER = 16 * 1024
OPAQUE = "application/octet-stream"
# What an HTTP header may hold as it is; the rest is written %XX, so that no property of a stranger's
# letter can end a header and begin another.
PLAIN = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
TRACING = ("traceparent", "tracestate", "baggage")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a service takes its events, and how its answers are meant."""

    url: str
    timeout: timedelta
    usual_wait: timedelta
    """How long a letter that is too early waits where the answer does not say."""
    refuse_client_errors: bool = False


class Pusher:
    """One HTTP client for all endpoints."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    def door(self, endpoint: Endpoint) -> Door:
        """The door of one service."""

        async def deliver(event: Event) -> Reply:
            return await self._push(event, endpoint)

        return deliver

    async def until_cancelled(self) -> None:
        """Live as long as the service does, then hang up."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _push(self, event: Event, endpoint: Endpoint) -> Reply:
        try:
            answer = await self._ask(event, endpoint)
        except TimeoutError:
            late = f"no answer within {duration.say(endpoint.timeout)}"
            return Reply(Failed(late, kind="TimeoutError"))
        except Exception as error:  # noqa: BLE001  # whatever stops a push is the table's "Exception"
            return Reply(Failed(_said(error), kind=type(error).__name__))
        return _reply(answer, endpoint, utc_now())

    async def _ask(self, event: Event, endpoint: Endpoint) -> Answer:
        client, deadline = self._open(), _deadline(endpoint.timeout)
        async with asyncio.timeout_at(deadline):
            request = client.build_request(
                "POST", endpoint.url, content=event.body, headers=dict(headers_of(event))
            )
            response = await client.send(request, stream=True)
        try:
            body = await _beginning(response, deadline)
        finally:
            await response.aclose()
        return Answer(response.status_code, response.headers.get("retry-after", ""), body)

    def _open(self) -> httpx2.AsyncClient:
        """Made when it is first needed: its TLS context takes a while. How many letters are on their
        way at once is the prefetch's to say, and where to is the settings': no proxy of the environment."""
        if self._client is None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
            self._client = httpx2.AsyncClient(
                follow_redirects=False, trust_env=False, timeout=None, limits=limits
            )
        return self._client


def headers_of(event: Event) -> Iterator[tuple[str, str]]:
    """What a service is told beside the body."""
    told = {
        "content-type": event.content_type or OPAQUE,
        "content-encoding": event.content_encoding,
        "x-message-id": event.message_id,
        "x-correlation-id": event.correlation_id,
        "x-event-type": event.type,
        names.ORIGINAL_EXCHANGE: event.exchange,
        names.ORIGINAL_ROUTING_KEY: event.routing_key,
        names.RETRY_COUNT: str(event.retries),
        "accept-encoding": "identity",
        "user-agent": "dead-letter-office",
    }
    told |= {name: v for name in TRACING if isinstance(v := event.headers.get(name), str)}
    yield from (
        (name, quote(value, PLAIN, errors="replace")) for name, value in told.items() if value
    )


async def _beginning(response: httpx2.Response, deadline: float) -> bytes:
    """As much of the body as we look at. The status is the answer: a body that breaks off changes nothing."""
    body = b""
    with suppress(httpx2.HTTPError, TimeoutError):
        async with asyncio.timeout_at(deadline):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) >= LONGEST_ANSWER:
                    break
    return body[:LONGEST_ANSWER]


def _reply(answer: Answer, endpoint: Endpoint, now: datetime) -> Reply:
    refuse = endpoint.refuse_client_errors
    outcome = outcome_of(answer, now, endpoint.usual_wait, refuse_client_errors=refuse)
    return Reply(outcome, pause_of(answer, now))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _deadline(timeout: timedelta) -> float:
    return asyncio.get_running_loop().time() + timeout.total_seconds()
