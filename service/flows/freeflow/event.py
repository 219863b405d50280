"""An event as a handler sees it: the letter under its first address, whatever way it came back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.core.outcome import Refuse


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `routing_key` and `exchange` are those it was first published with, and `retries`
    says how often it has been retried before."""

    body: bytes
    routing_key: str
    exchange: str
    domain: str
    headers: Mapping[str, object]
    retries: int
    letter: str
    """The sender's message id, or the one that was made at the first failure."""
    content_type: str | None = None

    def json(self) -> Any:
        """The body as JSON; a body that is none is refused, for it will never be one."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Refuse(f"the body is not JSON: {error}") from None
