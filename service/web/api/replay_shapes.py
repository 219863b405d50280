"""Replays as JSON: what is asked for, the plan, a job, its letters."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from service.core import duration
from service.core.replay import Terms
from service.core.states import Attempts, ItemState, ReplayState, Wanted
from service.ledger.replay_pages import Item
from service.ledger.replays import Replay
from service.web.api.asking import NO_NUL, FilterOfLetters, PageAsked, Why

LONGEST_WATCH = timedelta(days=1)


def _duration(text: str) -> str:
    wait = duration.parse(text)
    if not timedelta(milliseconds=100) <= wait <= LONGEST_WATCH:
        raise ValueError("100ms to 1d")
    return text


def _queue(name: str) -> str:
    if len(name.encode("utf-8", "replace")) > 255:
        raise ValueError("a queue's name has 255 bytes at most")
    return name


Duration = Annotated[str, Field(max_length=40), AfterValidator(_duration)]
ReplayPath = Annotated[str, Path(description="Its id, as lists have it.", examples=["0" * 16])]
QueueName = Annotated[str, Field(min_length=1, pattern=NO_NUL), AfterValidator(_queue)]


class NewReplay(BaseModel):
    """Which letters to send back, and how. What is left out is as the settings have it."""

    model_config = ConfigDict(extra="forbid")

    filter: FilterOfLetters = Field(
        description="Open letters (parked, back) of this filter; frozen when the job is made."
    )
    target: QueueName | None = Field(
        None, description="One queue for all; without it each goes where it died."
    )
    rate: float | None = Field(None, ge=0.01, le=10_000, description="Letters a second, at most.")
    canary: int | None = Field(
        None, ge=0, le=1_000, description="Letters tried first; any of them back stops the job."
    )
    stop_percent: float | None = Field(
        None, ge=0, le=100, description="Stop when more than this share came back."
    )
    watch: Duration | None = Field(
        None, description="How long a letter is watched after it was sent.", examples=["30s"]
    )
    attempts: Attempts = Field(
        Attempts.CONTINUED,
        description="`continued`: one attempt, then back; `fresh`: the whole ladder again.",
    )
    why: Why = Field("", description="For the audit, and for whoever comes after you.")
    dry_run: bool = Field(False, description="Only say what would be done.")

    def terms(self, usual: Terms) -> Terms:
        """What is asked for, and the settings for the rest."""
        return Terms(
            usual.rate if self.rate is None else self.rate,
            usual.canary if self.canary is None else self.canary,
            usual.stop_percent if self.stop_percent is None else self.stop_percent,
            usual.watch if self.watch is None else duration.parse(self.watch),
        )


class TermsBody(BaseModel):
    """How fast, how many first, when to stop, how long to watch."""

    rate: float
    canary: int
    stop_percent: float
    watch: str


class QueueLine(BaseModel):
    """A queue that letters would be sent to."""

    queue: str
    letters: int
    exists: bool | None = Field(description="null where nobody could look.")
    consumers: int | None
    ready: int | None = Field(description="Letters that wait in it already.")
    says: str = Field(description="Why nobody could look; empty where somebody did.")
    busy: str | None = Field(description="The replay that is sending there now.")


class ArrivingLine(BaseModel):
    """A cause that was seen in the last minutes."""

    model_config = ConfigDict(from_attributes=True)

    cause: str
    title: str
    last_seen: datetime


class PlanBody(BaseModel):
    """What a replay would do."""

    total: int
    queues: list[QueueLine]
    without_origin: int = Field(
        description="Letters left out because nobody knows where they died: name a target."
    )
    held: int = Field(description="Letters that another replay is going to send too.")
    still_arriving: list[ArrivingLine]
    duration: str = Field(description="At this rate, the watch windows included.", examples=["4m"])
    terms: TermsBody
    warnings: list[str] = Field(description="What speaks against it, a sentence each.")


class ReplayLine(BaseModel):
    """A job as it stands."""

    id: str
    state: ReplayState
    says: str = Field(description="Why it is in this state, where there is something to say.")
    wanted: Wanted = Field(description="What an operator wants of it.")
    who: str
    why: str
    filter: dict[str, object]
    target: str | None = Field(description="null: each letter goes where it died.")
    attempts: Attempts
    terms: TermsBody
    total: int
    created_at: datetime
    started_at: datetime | None
    ramped_at: datetime | None = Field(description="When the canary had passed.")
    ended_at: datetime | None = Field(description="When every letter had its result.")


class ReplayBody(ReplayLine):
    """One job with its figures."""

    letters: dict[ItemState, int] = Field(description="How many letters had which result.")


class Replays(BaseModel):
    """A page of jobs, newest first."""

    items: list[ReplayLine]
    next: str | None = Field(None, description="The cursor of the next page; null at the end.")


class ItemLine(BaseModel):
    """A letter of a job."""

    position: int
    letter: str = Field(description="Its id; empty where the letter has been forgotten since.")
    queue: str
    state: ItemState
    says: str
    sent_at: datetime | None
    ended_at: datetime | None


class Items(BaseModel):
    """A page of a job's letters, in its order."""

    items: list[ItemLine]
    next: str | None = Field(None, description="The cursor of the next page; null at the end.")


class ReplaysAsked(PageAsked):
    """Which jobs."""

    state: list[ReplayState] = Field([], max_length=20)


class ItemsAsked(PageAsked):
    """Which letters of a job."""

    state: list[ItemState] = Field([], max_length=20)


def terms_body(terms: Terms) -> TermsBody:
    """As JSON has it."""
    watch = duration.say(terms.watch)
    return TermsBody(
        rate=terms.rate, canary=terms.canary, stop_percent=terms.stop_percent, watch=watch
    )


def replay_line(replay: Replay) -> ReplayLine:
    """A job on a list."""
    return ReplayLine.model_validate(_said(replay))


def replay_body(replay: Replay) -> ReplayBody:
    """One job."""
    return ReplayBody.model_validate({**_said(replay), "letters": dict(replay.figures)})


def item_line(item: Item) -> ItemLine:
    """A letter of a job."""
    names = ItemLine.model_fields
    return ItemLine.model_validate({name: getattr(item, name) for name in names})


def _said(replay: Replay) -> dict[str, object]:
    alike = ReplayLine.model_fields.keys() - {"filter", "target", "terms"}
    return {
        **{name: getattr(replay, name) for name in alike},
        "filter": dict(replay.asked),
        "target": replay.target or None,
        "terms": terms_body(replay.terms),
    }
