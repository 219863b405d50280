"""Dead Letter Office: one verdict for every failed delivery. What a Python team imports is here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.core.outcome import NotYet, Refuse, RetryIn
    from service.flows.freeflow.event import Event
    from service.flows.freeflow.policy import Rules as Freeflow
    from service.retrying import Retrying

__all__ = ["Event", "Freeflow", "NotYet", "Refuse", "RetryIn", "Retrying"]

# Each from its place, when it is first asked for: the command line is to start without FastStream.
_PLACES = {
    "Event": ("service.flows.freeflow.event", "Event"),
    "Freeflow": ("service.flows.freeflow.policy", "Rules"),
    "NotYet": ("service.core.outcome", "NotYet"),
    "Refuse": ("service.core.outcome", "Refuse"),
    "RetryIn": ("service.core.outcome", "RetryIn"),
    "Retrying": ("service.retrying", "Retrying"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
