"""The ways people are told: a webhook that takes JSON, and whatever Apprise knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx2
import stamina

from service.core.alerting import Alarm
from service.office.watch import NotTold

SECONDS = 5


class NoApprise(Exception):
    """Apprise is asked for and not installed; says what to install."""


class Webhook:
    """A message as a POST of JSON: ids and counts, never a word out of a letter."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def tell(self, alarms: Sequence[Alarm], at: datetime) -> None:
        """Three tries; then it is said later."""
        try:
            async for attempt in stamina.retry_context(on=httpx2.HTTPError, attempts=3):
                with attempt:
                    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as client:
                        answer = await client.post(self._url, json=message(alarms, at))
                        answer.raise_for_status()
        except httpx2.HTTPStatusError as refused:
            status = refused.response.status_code
            raise NotTold(f"the webhook of alerts.webhook answers {status}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as fault:
            raise NotTold(f"alerts.webhook cannot be reached: {type(fault).__name__}") from None


class Apprise:
    """A message through Apprise: mail, chats, pagers, by its own URLs."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._apprise = _apprise(urls)

    async def tell(self, alarms: Sequence[Alarm], at: datetime) -> None:
        """Apprise waits in threads of its own."""
        title, body = words(alarms)
        async with asyncio.timeout(60):
            if not await self._apprise.async_notify(body=body, title=title):
                raise NotTold("one of the services in alerts.apprise does not take messages")


def message(alarms: Sequence[Alarm], at: datetime) -> dict[str, object]:
    """What a webhook is sent."""
    event = f"cause.{alarms[0].state.value}" if len(alarms) == 1 else "causes.digest"
    return {
        "event": event,
        "at": at.isoformat(),
        "causes": [
            {
                "id": alarm.cause,
                "state": alarm.state.value,
                "letters": alarm.letters,
                "since": alarm.since.isoformat(),
                "path": f"/causes/{alarm.cause}",
            }
            for alarm in alarms
        ],
    }


def words(alarms: Sequence[Alarm]) -> tuple[str, str]:
    """A title and some lines, for people."""
    if len(alarms) == 1:
        title = f"Dead letters: a {alarms[0].state.value} cause"
    else:
        title = f"Dead letters: {len(alarms)} causes"
    lines = (f"{a.state.value} cause {a.cause}: {a.letters} letters parked" for a in alarms)
    return title, "\n".join(lines)


def _apprise(urls: Sequence[str]) -> Any:
    try:
        import apprise  # type: ignore[import-not-found, unused-ignore]  # an extra
    except ImportError:
        raise NoApprise(
            "alerts.apprise needs the extra: pip install 'dead-letter-office[alerts]'"
        ) from None
    notifier = apprise.Apprise()
    for url in urls:
        notifier.add(url)
    return notifier
