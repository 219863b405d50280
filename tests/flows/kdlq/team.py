"""Handlers as a user would write them, for consumers from the settings."""

from __future__ import annotations

from typing import Any

from service import MustBeRedelivered, Status

NUMBER = 7


async def handle(order: dict[str, Any]) -> Status | None:
    """Ends as the order says."""
    match order.get("do"):
        case "redeliver":
            raise MustBeRedelivered("later")
        case "error":
            return Status.ERROR
        case "raise":
            raise ValueError("boom")
        case _:
            return None


def two(first: object, second: object) -> None:
    """Takes more than a message."""
