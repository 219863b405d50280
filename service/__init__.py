"""Dead Letter Office: one verdict for every failed delivery. What a Python team imports is here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.core.outcome import NotYet, Refuse, RetryIn
    from service.flows.freeflow.event import Event
    from service.flows.freeflow.policy import Rules as Freeflow
    from service.flows.kdlq.config import KDLQConfig
    from service.flows.kdlq.listening import KDLQListener
    from service.flows.kdlq.message import Message
    from service.flows.kdlq.status import KDLQError, MustBeRedelivered, Result, Status
    from service.kdlq import KDLQ, KDLQConsumer
    from service.retrying import Retrying

__all__ = [
    "KDLQ",
    "Event",
    "Freeflow",
    "KDLQConfig",
    "KDLQConsumer",
    "KDLQError",
    "KDLQListener",
    "Message",
    "MustBeRedelivered",
    "NotYet",
    "Refuse",
    "Result",
    "RetryIn",
    "Retrying",
    "Status",
]

# Each from its place, when it is first asked for: the command line is to start without FastStream.
_PLACES = {
    "Event": ("service.flows.freeflow.event", "Event"),
    "Freeflow": ("service.flows.freeflow.policy", "Rules"),
    "KDLQ": ("service.kdlq", "KDLQ"),
    "KDLQConfig": ("service.flows.kdlq.config", "KDLQConfig"),
    "KDLQConsumer": ("service.kdlq", "KDLQConsumer"),
    "KDLQError": ("service.flows.kdlq.status", "KDLQError"),
    "KDLQListener": ("service.flows.kdlq.listening", "KDLQListener"),
    "Message": ("service.flows.kdlq.message", "Message"),
    "MustBeRedelivered": ("service.flows.kdlq.status", "MustBeRedelivered"),
    "NotYet": ("service.core.outcome", "NotYet"),
    "Refuse": ("service.core.outcome", "Refuse"),
    "Result": ("service.flows.kdlq.status", "Result"),
    "RetryIn": ("service.core.outcome", "RetryIn"),
    "Retrying": ("service.retrying", "Retrying"),
    "Status": ("service.flows.kdlq.status", "Status"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
