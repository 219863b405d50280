"""A message as a KDLQ handler and its listeners see it, whichever broker it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.core.outcome import Refuse


@dataclass(frozen=True, slots=True)
class Message:
    """One delivery; `redelivered` and `kills` say how often it was redelivered and sent to the DLQ."""

    body: bytes
    headers: Mapping[str, object]
    source: str
    """The queue or topic that it came from now."""
    letter: str
    """Its id: the sender's, or the one that was made when it was first seen; the same at every hop."""
    redelivered: int = 0
    kills: int = 0
    marker: str = ""
    """The handler that sent it on last (`KDLQ_PrcMarker`); empty on its first way."""
    key: bytes | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    """Milliseconds since 1970, where the broker has one."""
    content_type: str | None = None

    def json(self) -> Any:
        """The body as JSON; a body that is none is refused, for it will never be one."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Refuse(f"the body is not JSON: {error}") from None
