"""The handlers of domains: the user's functions, called with the event or with what they make of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from service.flows import handlers
from service.flows.freeflow.event import Event

Handler = Callable[[Event], Awaitable[object]]


def find(path: str) -> Handler:
    """The handler at `package.module:function`, ready for events; NoHandler if there is none."""
    return handlers.find(path, Event)
