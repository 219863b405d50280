"""What the flows say to integrators about their channels, for the AsyncAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faststream.rabbit import RabbitBroker
from pydantic import BaseModel

KEPT_AS = "dlo.chapters"  # in FastStream's context of the broker that the flow subscribed to


@dataclass(frozen=True, slots=True)
class Example:
    """A letter as it could be seen on the wire."""

    name: str
    summary: str
    headers: Mapping[str, object]
    body: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of letter: what its headers say, and examples of it. The body is never opened."""

    name: str
    title: str
    description: str
    headers: type[BaseModel]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of an address that the letter decides."""

    description: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What the document says of a channel beside what FastStream knows of it."""

    title: str
    summary: str
    does: str
    carries: Kind
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chapter:
    """What a flow says to integrators: an introduction, and a page per channel, by its title."""

    introduction: str
    pages: Mapping[str, Page]


def describe(broker: RabbitBroker, chapter: Chapter) -> None:
    """Add a chapter to the document of the service that this broker belongs to."""
    broker.context.set_global(KEPT_AS, (*chapters_of(broker), chapter))


def chapters_of(broker: Any) -> tuple[Chapter, ...]:
    """The chapters of a broker's flows, in the order in which they subscribed."""
    chapters: tuple[Chapter, ...] = broker.context.get(KEPT_AS, ())
    return chapters
