"""What the broker wrote about a letter's past: `x-death`, read without trusting its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

LONGEST_NAME = 255
DEATH_REASONS = frozenset({"rejected", "expired", "maxlen", "delivery_limit"})


@dataclass(frozen=True, slots=True)
class Death:
    """One entry of `x-death`: where the letter died and under which address it had come there."""

    queue: str
    exchange: str
    routing_key: str
    reason: str
    count: int
    since: datetime | None = None
    """When it died there for the first time."""


def newest_death(headers: Mapping[str, object]) -> Death | None:
    """The newest entry: the broker puts its own first, whatever a stranger had written there before."""
    entries = headers.get("x-death")
    if not isinstance(entries, list) or not entries:
        return None
    return _death(entries[0])


def rejection(headers: Mapping[str, object], queue: str) -> Death | None:
    """That consumers of this queue rejected the letter: the address it had come under the first time,
    and how often since, by the broker's own count.

    Not the newest entry (that is the retry queue's) and not the sum (each round has two deaths).
    """
    entries = headers.get("x-death")
    deaths = map(_death, entries) if isinstance(entries, list) else ()
    mine = (d for d in deaths if d is not None and (d.queue, d.reason) == (queue, "rejected"))
    return max(mine, key=lambda death: death.count, default=None)


def rejections(headers: Mapping[str, object], queue: str) -> int:
    """How often consumers of this queue rejected the letter, by the broker's own count."""
    death = rejection(headers, queue)
    return 0 if death is None else death.count


def deliveries_before(headers: Mapping[str, object], *, redelivered: bool) -> int:
    """How often a quorum queue gave the letter out before this time.

    On a first delivery the header is a sender's, or another queue's: it counts nothing here.
    """
    count = headers.get("x-delivery-count")
    if not redelivered or not isinstance(count, int) or isinstance(count, bool):
        return 0
    return max(count, 0)


def _death(entry: object) -> Death | None:
    """An entry as the broker writes it, or None for anything else."""
    if not isinstance(entry, dict):
        return None
    queue, exchange, reason = entry.get("queue"), entry.get("exchange"), entry.get("reason")
    keys, count = entry.get("routing-keys"), entry.get("count")
    if not (isinstance(queue, str) and queue and isinstance(exchange, str)):
        return None
    first = keys[0] if isinstance(keys, list) and keys else ""
    key = first if isinstance(first, str) else ""
    if any(_size(name) > LONGEST_NAME for name in (queue, exchange, key)):
        return None  # no broker has such names
    since = entry.get("time")
    return Death(
        queue=queue,
        exchange=exchange,
        routing_key=key,
        reason=reason if isinstance(reason, str) and reason in DEATH_REASONS else "other",
        count=count if isinstance(count, int) and count > 0 else 1,
        since=since if isinstance(since, datetime) and since.tzinfo is not None else None,
    )


def _size(name: str) -> int:
    """Bytes on the wire: AMQP has one byte for the length of a name."""
    return len(name) if name.isascii() else len(name.encode("utf-8", "surrogatepass"))
