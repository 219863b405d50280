"""Functions as users write them, good ones and bad ones, found by their dotted paths."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from service import Event, Refuse, RetryIn

taken: list[object] = []
NUMBER = 42


class Document(BaseModel):
    """A document."""

    id: int


async def event(event: Event) -> None:
    """Takes the event."""
    taken.append(event)


async def plain(event):  # type: ignore[no-untyped-def]  # as many people write
    """Takes the event too."""
    taken.append(event)


def blocking(event: Event) -> None:
    """A plain function."""
    taken.append(event.json())


async def body(body: bytes) -> None:
    """Takes the bytes."""
    taken.append(body)


async def mapping(content: dict[str, Any]) -> None:
    """Takes the JSON."""
    taken.append(content)


async def document(document: Document) -> None:
    """Takes the JSON as a model."""
    taken.append(document)


class Archive:
    """An object that can be called."""

    async def __call__(self, event: Event) -> None:
        """Takes the event."""
        raise Refuse("full")


archive = Archive()


async def two(event: Event, more: int) -> None:
    """Asks for more than there is."""


async def none() -> None:
    """Asks for nothing."""


async def strange(event: Archive) -> None:
    """Asks for what no JSON is."""


async def always_fails(event: Event) -> None:
    """Fails."""
    raise ValueError(f"cannot take {event.routing_key}")


async def wishes(event: Event) -> None:
    """Asks for a tier that does not exist, then is content."""
    if event.retries == 0:
        raise RetryIn("7m", "too busy")
