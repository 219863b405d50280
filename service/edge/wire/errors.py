"""What ends a connection or a channel, in words."""

from __future__ import annotations

from service.edge.post import NotSent


class Lost(ConnectionError):
    """The connection is gone."""


class Refused(ConnectionError):
    """The broker ended a connection or a channel itself; its code, and what it said."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code, self.text = code, text


class Doubtful(NotSent):
    """The broker closed the channel over one of several letters, and did not say over which."""


NOT_FOUND, NO_ACCESS, NOT_ALLOWED = 404, 403, 530
