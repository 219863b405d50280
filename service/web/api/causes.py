"""`/api/v1/causes`: letters that failed alike, and what people do about them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, assert_never

from fastapi import APIRouter, Body, Query

from service.core.states import CauseState
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.cause_life import Act, NotNow, act, annotate
from service.ledger.causes import After, Cause, NoCause, Wanted, find, page
from service.ledger.moment import in_utc
from service.web.access import Person
from service.web.api.asking import CausePath, Said, is_id
from service.web.api.cause_shapes import (
    CauseLine,
    Causes,
    CausesAsked,
    Mute,
    Note,
    OneCause,
    one_cause,
)
from service.web.api.cursors import broken, cursor, keys_of
from service.web.api.letters import Clock, Who, utc_now
from service.web.problems import Problem, documented

PATH = "/api/v1/causes"
KINDS = {"changed": "changed_at", "last_seen": "last_seen"}


Optional = Annotated[Said | None, Body()]


def router(book: Book, clock: Clock = utc_now) -> APIRouter:
    """Everything about causes."""
    routes = APIRouter(prefix=PATH, tags=["causes"])
    _reading(routes, book, clock)
    _acting(routes, book, clock)
    return routes


def _reading(routes: APIRouter, book: Book, clock: Clock) -> None:
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
        return await _story(book, id, clock())


def _acting(routes: APIRouter, book: Book, clock: Clock) -> None:
    answers = documented(401, 403, 404, 409, 413, 422, 503)

    @routes.post("/{id}/acknowledge", responses=answers)
    async def acknowledge(id: CausePath, who: Who, said: Optional = None) -> OneCause:
        """Somebody looks after it."""
        return await _act(book, id, Act.ACKNOWLEDGE, who, said or Said(), clock())

    @routes.post("/{id}/mute", responses=answers)
    async def mute(
        id: CausePath, who: Who, said: Annotated[Mute | None, Body()] = None
    ) -> OneCause:
        """No alerts for it, until a moment or until somebody unmutes it."""
        return await _act(book, id, Act.MUTE, who, said or Mute(), clock())

    @routes.post("/{id}/unmute", responses=answers)
    async def unmute(id: CausePath, who: Who, said: Optional = None) -> OneCause:
        """Alerts again."""
        return await _act(book, id, Act.UNMUTE, who, said or Said(), clock())

    @routes.post("/{id}/resolve", responses=answers)
    async def resolve(id: CausePath, who: Who, said: Optional = None) -> OneCause:
        """It is mended; the next burial makes it regressed."""
        return await _act(book, id, Act.RESOLVE, who, said or Said(), clock())

    @routes.put("/{id}/note", responses=documented(401, 403, 404, 413, 422, 503))
    async def note(id: CausePath, who: Who, said: Note) -> OneCause:
        """Write down what is known of it, and whose it is."""
        deed = Deed(who.name, "cause.note", f"cause:{id}", 1, said.why, {"owner": said.owner})
        if is_id(id, 16):
            await annotate(book, id, said.note, said.owner, deed, clock())
        return await _story(book, id, clock())


async def _act(book: Book, id: str, what: Act, who: Person, said: Said, now: datetime) -> OneCause:
    until = said.until if isinstance(said, Mute) else None
    if until is not None and until <= now:
        raise _past()
    details = {"until": until.isoformat()} if until else {}
    deed = Deed(who.name, f"cause.{what.value}", f"cause:{id}", 1, said.why, details)
    match await act(book, id, what, deed, now, until) if is_id(id, 16) else NoCause():
        case Cause():
            return await _story(book, id, now)
        case NotNow(state):
            raise _not_now(what, state)
        case NoCause():
            raise _unknown()
        case never:
            assert_never(never)


async def _story(book: Book, id: str, now: datetime) -> OneCause:
    story = await find(book, id, now) if is_id(id, 16) else NoCause()
    if isinstance(story, NoCause):
        raise _unknown()
    return one_cause(story)


def _after(text: str | None, sort: str) -> After | None:
    if text is None:
        return None
    moment, id_ = keys_of(text, sort, str, str)
    try:
        return in_utc(datetime.fromisoformat(str(moment))), str(id_)
    except (ValueError, OverflowError):  # the second: out of the calendar, once in UTC
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
