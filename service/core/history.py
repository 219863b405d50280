"""What the broker wrote about a letter's past: `x-death`, read without trusting its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEATH_REASONS = frozenset({"rejected", "expired", "maxlen", "delivery_limit"})


@dataclass(frozen=True, slots=True)
class Death:
    """One entry of `x-death`: where the letter died and under which address it had come there."""

    queue: str
    exchange: str
    routing_key: str
    reason: str
    count: int


def newest_death(headers: Mapping[str, object]) -> Death | None:
    """The newest entry: the broker puts its own first, whatever a stranger had written there before."""
    entries = headers.get("x-death")
    if not isinstance(entries, list) or not entries:
        return None
    return _death(entries[0])


def _death(entry: object) -> Death | None:
    """An entry as the broker writes it, or None for anything else."""
    if not isinstance(entry, dict):
        return None
    queue, exchange, reason = entry.get("queue"), entry.get("exchange"), entry.get("reason")
    keys, count = entry.get("routing-keys"), entry.get("count")
    if not (isinstance(queue, str) and queue and isinstance(exchange, str)):
        return None
    key = keys[0] if isinstance(keys, list) and keys else ""
    return Death(
        queue=queue,
        exchange=exchange,
        routing_key=key if isinstance(key, str) else "",
        reason=reason if isinstance(reason, str) and reason in DEATH_REASONS else "other",
        count=count if isinstance(count, int) and count > 0 else 1,
    )
