"""Letters as the API answers with them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from service.core.states import ItemState, LetterState
from service.ledger.letters import Whole
from service.web.api.asking import FilterOfLetters, PageAsked, Why
from service.web.api.readable import PREVIEW, in_base64, plain, text_of


def _short(name: str) -> str:
    """AMQP has one byte for its length."""
    if not 1 <= len(name.encode("utf-8", "replace")) <= 255:
        raise ValueError("1 to 255 bytes")
    return name


HeaderName = Annotated[str, AfterValidator(_short)]
HeaderValue = (
    Annotated[StrictStr, Field(max_length=30_000)]
    | Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1)]
)


class LetterLine(BaseModel):
    """A letter on a list."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    letter: str = Field(description="The sender's message id, or the one it was given here.")
    state: LetterState
    flow: str
    queue: str = Field(description="The dead queue it was taken from.")
    origin_queue: str = Field(description="Where it died; empty where nobody knows.")
    exchange: str
    routing_key: str
    cause: str
    error_type: str
    error: str
    place: str = Field(description="The innermost frame of the application.")
    reason: str = Field(description="Why it was given up.")
    retries: int
    burials: int
    replays: int
    size: int = Field(description="Bytes of its body.")
    content_type: str
    first_failure: datetime
    filed_at: datetime
    buried_at: datetime
    changed_at: datetime
    replay: str | None = Field(None, description="The replay that holds it, or held it last.")


class Letters(BaseModel):
    """A page of letters, newest first. It may be short and still have a `next`."""

    items: list[LetterLine]
    next: str | None = Field(None, description="The cursor of the next page; null at the end.")


class Body(BaseModel):
    """The beginning of a body; `whole` where it is all of it."""

    base64: str
    text: str | None = Field(description="The same as text, where it is UTF-8.")
    whole: bool


class BurialLine(BaseModel):
    """An earlier burial."""

    model_config = ConfigDict(from_attributes=True)

    burial: int
    buried_at: datetime
    cause: str
    reason: str
    error_type: str
    error: str
    retries: int
    replay: str | None


class ReplayedLine(BaseModel):
    """What became of it in one replay."""

    model_config = ConfigDict(from_attributes=True)

    replay: str
    position: int
    queue: str
    state: ItemState
    says: str
    sent_at: datetime | None
    ended_at: datetime | None


class OneLetter(LetterLine):
    """A letter with its content and its past."""

    why: str = Field(description="One sentence: why it lies here.")
    body: Body
    headers: dict[str, Any]
    headers_fault: str = Field(description="What could not be read of its headers.")
    headers_base64: str
    properties: dict[str, Any]
    properties_base64: str
    earlier: list[BurialLine] = Field(description="The burials before the newest.")
    replayed: list[ReplayedLine]
    edited_from: str | None
    edits: list[str] = Field(description="Letters that were made of this one by editing.")


class LettersAsked(FilterOfLetters, PageAsked):
    """A filter and a page."""


class ActOnMany(BaseModel):
    """What is done to all letters of a filter."""

    model_config = ConfigDict(extra="forbid")

    filter: FilterOfLetters
    why: Why = Field(min_length=1, description="For the audit, and for whoever comes after you.")
    expected: int | None = Field(
        None, ge=0, le=2**31, description="Do it only if it takes exactly so many letters."
    )
    dry_run: bool = Field(False, description="Only count them.")


class HowMany(BaseModel):
    """Letters that were, or would be, acted on."""

    letters: int
    dry_run: bool


class Counted(BaseModel):
    """How many letters a filter takes."""

    letters: int
    more: bool = Field(description="There are more than this; they were not counted.")


class Edit(BaseModel):
    """What is changed of a letter: the body as text or base64, headers by name (null drops one)."""

    model_config = ConfigDict(extra="forbid")

    body: str | None = Field(None, description="The new body, in base64.")
    text: str | None = Field(None, description="The new body, as text.")
    headers: dict[HeaderName, HeaderValue | None] = Field(default_factory=dict, max_length=100)
    why: Why = Field(min_length=1)


class EditedLetter(BaseModel):
    """The letter that was made by an edit."""

    id: str
    edited_from: str


class ImportFault(BaseModel):
    """A line that could not be taken."""

    line: int
    what: str


class Imported(BaseModel):
    """What became of the lines of an import."""

    letters: int = Field(description="New here.")
    known: int = Field(description="Here already, and left as they were.")
    faulty: int
    faults: list[ImportFault] = Field(description="The first faults, by line.")


def one_letter(whole: Whole, why: str, headers: dict[str, object], fault: str) -> OneLetter:
    """A letter for its own page."""
    line = LetterLine.model_validate(whole.letter)
    body = whole.body
    return OneLetter(
        **line.model_dump(),
        why=why,
        body=Body(base64=in_base64(body[:PREVIEW]), text=text_of(body), whole=len(body) <= PREVIEW),
        headers=plain(headers),
        headers_fault=fault,
        headers_base64=in_base64(whole.headers),
        properties=plain(whole.facts.get("properties") or {}),
        properties_base64=in_base64(whole.properties),
        earlier=[BurialLine.model_validate(one) for one in whole.earlier],
        replayed=[ReplayedLine.model_validate(one) for one in whole.replayed],
        edited_from=whole.edited_from,
        edits=list(whole.edits),
    )
