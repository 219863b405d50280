"""What consumers saw, in a form in which two brokers can be compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

Seen = Counter[str]
MOST = 8  # differences told of each kind


@dataclass(slots=True)
class Sightings:
    """Every delivery with everything a consumer can read of it, except the time of a death."""

    deliveries: Seen = field(default_factory=Counter)
    routed: list[bool] = field(default_factory=list)

    def add(
        self,
        queue: str,
        exchange: str,
        routing_key: str,
        body: bytes,
        headers: Mapping[str, object],
        *,
        redelivered: bool,
        expiration: object,
    ) -> None:
        """One delivery more."""
        seen = {
            "queue": queue,
            "exchange": exchange,
            "key": routing_key,
            "letter": body.decode(),
            "headers": {name: _timeless(value) for name, value in headers.items()},
            "redelivered": redelivered,
            "expires": expiration is not None,
        }
        self.deliveries[json.dumps(seen, sort_keys=True)] += 1


def difference(expected: Sightings, seen: Sightings) -> str:
    """Sentences for a person who has to find out who is right."""
    missing = [f"only in the simulation: {one}" for one in (expected.deliveries - seen.deliveries)]
    extra = [f"only on the broker:     {one}" for one in (seen.deliveries - expected.deliveries)]
    return "\n".join([*sorted(missing)[:MOST], *sorted(extra)[:MOST]])


def _timeless(value: object) -> object:
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items() if name != "time"}
    return value
