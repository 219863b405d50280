"""What a request may ask for: the filter of letters, how long a page is, why something is done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from service.core.states import LetterState
from service.ledger.filters import Filter

NO_NUL = r"^[^\x00]*$"
MOST_IDS = 1_000
LONGEST_PAGE = 500


def _in_utc(moment: datetime) -> datetime:
    """Without a zone it is UTC: the databases compare in it."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("a moment between the years 1 and 9999") from None


def _in_255_bytes(name: str) -> str:
    """AMQP has one byte for the length of a key or of a queue's name."""
    if len(name.encode("utf-8", "replace")) > 255:
        raise ValueError("at most 255 bytes")
    return name


Short = AfterValidator(_in_255_bytes)
Moment = Annotated[datetime, AfterValidator(_in_utc)]
LetterId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])]
CauseId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", examples=["4f6c0a1b2c3d4e5f"])]
LetterPath = Annotated[str, Path(description="Its id, as lists have it.", examples=["0" * 32])]
CausePath = Annotated[
    str, Path(description="Its id, as lists have it.", examples=["4f6c0a1b2c3d4e5f"])
]
Name = Annotated[str, Field(max_length=1_000, pattern=NO_NUL)]
Words = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Why = Annotated[str, Field(max_length=2_000, pattern=NO_NUL)]


def is_id(text: str, length: int) -> bool:
    """Whether anything could have this id: what could not is not looked for."""
    return len(text) == length and set(text) <= set("0123456789abcdef")


class FilterOfLetters(BaseModel):
    """Which letters: everything that is given must hold; several of one kind are alternatives."""

    model_config = ConfigDict(extra="forbid")

    id: list[LetterId] = Field([], max_length=MOST_IDS, description="These letters.")
    state: list[LetterState] = Field([], max_length=20, description="In one of these states.")
    flow: Name | None = Field(None, examples=["dlq_processor"])
    queue: Name | None = Field(None, description="The dead queue it was taken from.")
    origin_queue: Name | None = Field(None, description="The queue it died in.")
    routing_key: Name | None = None
    cause: CauseId | None = None
    letter: Name | None = Field(None, description="The sender's message id.")
    error_type: Name | None = None
    header: Annotated[str, Field(max_length=1_000, pattern=r"^[^=\x00]+=[^\x00]*$")] | None = Field(
        None, description="A header with this text: `name=value`.", examples=["tenant=acme"]
    )
    text: Words | None = Field(
        None, description="Somewhere in the error, the reason or the message id."
    )
    since: Moment | None = Field(None, description="Buried then or later.")
    until: Moment | None = Field(None, description="Buried before then.")

    def filter(self) -> Filter:
        """As the ledger takes it."""
        name, _, value = (self.header or "").partition("=")
        return Filter(
            tuple(self.id),
            tuple(self.state),
            self.flow,
            self.queue,
            self.origin_queue,
            self.routing_key,
            self.cause,
            self.letter,
            self.error_type,
            (name, value) if self.header else None,
            self.text,
            self.since,
            self.until,
        )

    def said(self) -> dict[str, object]:
        """What was asked for, for the audit."""
        return self.model_dump(mode="json", exclude_defaults=True)


class PageAsked(BaseModel):
    """Which part of a list."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1, le=LONGEST_PAGE)
    cursor: Annotated[str, Field(max_length=500)] | None = Field(
        None, description="`next` of the page before; none for the first."
    )


class Said(BaseModel):
    """Why an operator does something."""

    model_config = ConfigDict(extra="forbid")

    why: Why = Field(default="", description="For the audit, and for whoever comes after you.")
