"""`/api/v1/causes`: letters that failed alike, and what people do about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, assert_never

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field

from service.core.states import CauseState, LetterState
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.cause_life import Act, NotNow, act, annotate
from service.ledger.causes import After, Cause, NoCause, Story, Wanted, find, page
from service.ledger.moments import utc
from service.web.access import Person
from service.web.api.asking import CausePath, Moment, PageAsked, Said, Words, is_id
from service.web.api.cursors import broken, cursor, keys_of
from service.web.api.letters import Clock, Who, utc_now
from service.web.problems import Problem, documented

PATH = "/api/v1/causes"
KINDS = {"changed": "changed_at", "last_seen": "last_seen"}


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


Optional = Annotated[Said | None, Body()]


def router(book: Book, clock: Clock = utc_now) -> APIRouter:
    """Everything about causes."""
    routes = APIRouter(prefix=PATH, tags=["causes"])
    acting = documented(401, 403, 404, 409, 413, 422, 503)

    @routes.get("", responses=documented(401, 403, 422, 503))
    async def list_(asked: Annotated[CausesAsked, Query()]) -> Causes:
        """A page of causes, the newest change first."""
        wanted = Wanted(tuple(asked.state), asked.owner, asked.text, asked.open, KINDS[asked.sort])
        after = _after(asked.cursor, asked.sort)
        causes, then = await page(book, wanted, after, asked.limit, clock())
        return Causes(
            items=[CauseLine.model_validate(cause) for cause in causes],
            next=None if then is None else cursor(asked.sort, then[0].isoformat(), then[1]),
        )

    @routes.get("/{id}", responses=documented(401, 403, 404, 503))
    async def show(id: CausePath) -> OneCause:
        """One cause: its week, and where its letters come from."""
        return await _story(id)

    @routes.post("/{id}/acknowledge", responses=acting)
    async def acknowledge(id: CausePath, who: Who, said: Optional = None) -> OneCause:
        """Somebody looks after it."""
        return await _act(id, Act.ACKNOWLEDGE, who, said or Said())

    @routes.post("/{id}/mute", responses=acting)
    async def mute(
        id: CausePath, who: Who, said: Annotated[Mute | None, Body()] = None
    ) -> OneCause:
        """No alerts for it, until a moment or until somebody unmutes it."""
        return await _act(id, Act.MUTE, who, said or Mute())

    @routes.post("/{id}/unmute", responses=acting)
    async def unmute(id: CausePath, who: Who, said: Optional = None) -> OneCause:
        """Alerts again."""
        return await _act(id, Act.UNMUTE, who, said or Said())

    @routes.post("/{id}/resolve", responses=acting)
    async def resolve(id: CausePath, who: Who, said: Optional = None) -> OneCause:
        """It is mended; the next burial makes it regressed."""
        return await _act(id, Act.RESOLVE, who, said or Said())

    @routes.put("/{id}/note", responses=documented(401, 403, 404, 413, 422, 503))
    async def note(id: CausePath, who: Who, said: Note) -> OneCause:
        """Write down what is known of it, and whose it is."""
        deed = Deed(who.name, "cause.note", f"cause:{id}", 1, said.why, {"owner": said.owner})
        if not is_id(id, 16) or isinstance(
            await annotate(book, id, said.note, said.owner, deed, clock()), NoCause
        ):
            raise _unknown()
        return await _story(id)

    async def _act(id: str, what: Act, who: Person, said: Said) -> OneCause:
        until = said.until if isinstance(said, Mute) else None
        now = clock()
        if until is not None and until <= now:
            raise _past()
        details = {"until": until.isoformat()} if until else {}
        deed = Deed(who.name, f"cause.{what.value}", f"cause:{id}", 1, said.why, details)
        match await act(book, id, what, deed, now, until) if is_id(id, 16) else NoCause():
            case Cause():
                return await _story(id)
            case NotNow(state):
                raise _not_now(what, state)
            case NoCause():
                raise _unknown()
            case never:
                assert_never(never)

    async def _story(id: str) -> OneCause:
        story = await find(book, id, clock()) if is_id(id, 16) else NoCause()
        if isinstance(story, NoCause):
            raise _unknown()
        return _one(story)

    return routes


def _one(story: Story) -> OneCause:
    line = CauseLine.model_validate(story.cause)
    return OneCause(
        **line.model_dump(),
        week=[Hour(hour=hour, burials=burials) for hour, burials in story.week],
        breakdown=BreakdownBody.model_validate(story.breakdown),
    )


def _after(text: str | None, sort: str) -> After | None:
    if text is None:
        return None
    moment, id_ = keys_of(text, sort, str, str)
    try:
        return utc(datetime.fromisoformat(str(moment))), str(id_)
    except ValueError:
        raise broken() from None


def _unknown() -> Problem:
    hint = f"GET {PATH} lists the causes with their ids."
    return Problem(404, "No such cause", "There is no cause with this id.", hint=hint)


def _not_now(what: Act, state: CauseState) -> Problem:
    hints = {
        CauseState.RESOLVED: "A resolved cause is done; its next burial makes it regressed.",
        CauseState.MUTED: "Unmute it first.",
    }
    return Problem(
        409,
        f"The cause is {state.value}",
        f"A cause that is {state.value} cannot be changed by {what.value}; nothing was done.",
        hint=hints.get(state, "Only a muted cause can be unmuted."),
    )


def _past() -> Problem:
    hint = "Name a moment to come, or none: then it is muted until somebody unmutes it."
    return Problem(422, "The moment has passed", "`until` is not in the future.", hint=hint)
