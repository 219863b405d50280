"""Causes as the API answers with them, and what it is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.core.states import CauseState, LetterState
from service.ledger.causes import Story
from service.web.api.asking import Moment, PageAsked, Said, Words


class CauseLine(BaseModel):
    """A cause on a list."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    version: int = Field(description="Of the fingerprint.")
    title: str
    error_type: str
    place: str
    state: CauseState
    muted_until: datetime | None
    note: str
    owner: str
    first_seen: datetime
    last_seen: datetime
    changed_at: datetime
    burials: int = Field(description="Burials for this cause, ever.")
    open: int = Field(description="Letters that need somebody.")
    letters: dict[LetterState, int] = Field(description="Its letters by state.")
    hours: list[int] = Field(
        description="Burials in each of the last 24 hours, the oldest first; the last is not over."
    )


class Causes(BaseModel):
    """A page of causes."""

    items: list[CauseLine]
    next: str | None = Field(None, description="The cursor of the next page; null at the end.")


class Hour(BaseModel):
    """Burials in one hour."""

    hour: datetime
    burials: int


class BreakdownLine(BaseModel):
    """Open letters of one routing key that died in one queue."""

    model_config = ConfigDict(from_attributes=True)

    routing_key: str
    origin_queue: str
    letters: int


class BreakdownBody(BaseModel):
    """Where the newest open letters come from."""

    model_config = ConfigDict(from_attributes=True)

    letters: int = Field(description="Letters that were looked at.")
    whole: bool = Field(description="These are all open letters of the cause.")
    lines: Sequence[BreakdownLine]


class OneCause(CauseLine):
    """A cause for its own page."""

    week: list[Hour] = Field(description="The hours of the last seven days that had burials.")
    breakdown: BreakdownBody


class CausesAsked(PageAsked):
    """Which causes."""

    state: list[CauseState] = Field([], max_length=20)
    owner: Words | None = None
    text: Words | None = Field(None, description="Somewhere in title, note or type of the error.")
    open: bool | None = Field(None, description="With, or without, letters that need somebody.")
    sort: Literal["changed", "last_seen"] = Field("changed", description="The newest first.")


class Mute(Said):
    """How long a cause is muted."""

    until: Moment | None = Field(default=None, description="Not given: until somebody unmutes it.")


class Note(Said):
    """What people know of a cause, and whose it is."""

    note: Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
    owner: Words = ""


def one_cause(story: Story) -> OneCause:
    """A cause for its own page."""
    line = CauseLine.model_validate(story.cause)
    return OneCause(
        **line.model_dump(),
        week=[Hour(hour=hour, burials=burials) for hour, burials in story.week],
        breakdown=BreakdownBody.model_validate(story.breakdown),
    )
