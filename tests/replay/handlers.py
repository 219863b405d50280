"""Handlers that fail as long as a file says so, and write down every attempt."""

from __future__ import annotations

import os
from pathlib import Path

from service import Event

FOLDER = "DLO_TEST_HANDLERS"


async def user(event: Event) -> None:
    """FreeFlow's."""
    _take("freeflow", event.body)


async def bus(event: object) -> None:
    """The event bus's."""
    _take("event_bus", getattr(event, "body", b""))


def _take(flow: str, body: bytes) -> None:
    folder = Path(os.environ[FOLDER])
    with (folder / "attempts").open("a") as attempts:
        attempts.write(f"{flow} {body.decode()}\n")
    if (folder / "broken").exists():
        raise ValueError("boom")
