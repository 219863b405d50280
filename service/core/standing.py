"""How a queue stands on the broker, seen without touching it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """It is there: letters ready in it, and its consumers."""

    ready: int
    consumers: int


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such queue."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Nobody could look, and why."""

    why: str


Sight = Standing | Absent | Unseen
