"""`/api/v1/letters/…`: discard, restore and edit."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from fastapi import APIRouter, Response

from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.discards import Moved, Otherwise, discard, discardable, restorable, restore
from service.ledger.edits import Content, Edited, NotOpen, Unchanged, edit
from service.ledger.filters import Filter
from service.ledger.letters import NoLetter
from service.web.access import Person
from service.web.api.asking import LetterPath, is_id
from service.web.api.letter_shapes import ActOnMany, Edit, EditedLetter, HowMany
from service.web.api.letters import PATH, Desk, Rewrite, Who, unknown
from service.web.problems import Problem, documented

Act = Callable[[Book, Filter, Deed, int | None, datetime], Awaitable[Moved | Otherwise]]
Counting = Callable[[Book, Filter], Awaitable[int]]


def router(book: Book, desk: Desk) -> APIRouter:
    """What operators do to letters, but replay them."""
    routes = APIRouter(prefix=PATH, tags=["letters"])
    _on_many(routes, book, desk)
    _on_one(routes, book, desk)
    return routes


def _on_many(routes: APIRouter, book: Book, desk: Desk) -> None:
    @routes.post("/discard", responses=documented(401, 403, 409, 413, 422, 503))
    async def discard_(asked: ActOnMany, who: Who) -> HowMany:
        """Discard the open letters of a filter. They can be restored for as long as they are kept."""
        return await _act(asked, who, discard, discardable, "discard")

    @routes.post("/restore", responses=documented(401, 403, 409, 413, 422, 503))
    async def restore_(asked: ActOnMany, who: Who) -> HowMany:
        """Bring the discarded letters of a filter back."""
        return await _act(asked, who, restore, restorable, "restore")

    async def _act(
        asked: ActOnMany, who: Person, act: Act, counting: Counting, verb: str
    ) -> HowMany:
        wanted = asked.filter.filter()
        if asked.dry_run:
            return HowMany(letters=await counting(book, wanted), dry_run=True)
        deed = Deed(who.name, f"letters.{verb}", _subject(wanted), 0, asked.why)
        deed = replace(deed, details={"filter": asked.filter.said()})
        match await act(book, wanted, deed, asked.expected, desk.clock()):
            case Moved(letters):
                return HowMany(letters=letters, dry_run=False)
            case Otherwise(letters):
                raise _unexpected(letters, asked.expected)
            case never:
                assert_never(never)


def _on_one(routes: APIRouter, book: Book, desk: Desk) -> None:
    @routes.post(
        "/{id}/edit", status_code=201, responses=documented(401, 403, 404, 409, 413, 422, 503)
    )
    async def edit_(id: LetterPath, asked: Edit, who: Who, response: Response) -> EditedLetter:
        """Make a changed copy of an open letter. The original is discarded, linked and restorable."""
        if not desk.may_edit:
            raise _no_edits()
        if not is_id(id, 32):
            raise unknown()
        deed = Deed(who.name, "letter.edit", f"letter:{id}", 1, asked.why)
        deed = replace(deed, details={"headers": sorted(asked.headers)[:100]})
        change = _change(asked, desk.rewrite)
        match await edit(book, id, change, deed, desk.clock()):
            case Edited(new):
                response.headers["Location"] = f"{PATH}/{new}"
                return EditedLetter(id=new, edited_from=id)
            case NoLetter():
                raise unknown()
            case NotOpen(state):
                raise _not_open(state.value)
            case Unchanged():
                raise _unchanged()
            case never:
                assert_never(never)


def _subject(wanted: Filter) -> str:
    """What the audit calls it: one cause or letter by its name, so that it can be asked for."""
    if wanted == Filter(cause=wanted.cause, states=wanted.states) and wanted.cause:
        return f"cause:{wanted.cause}"
    return f"letter:{wanted.ids[0]}" if len(wanted.ids) == 1 else "letters"


def _change(asked: Edit, rewrite: Rewrite) -> Callable[[Content], Content]:
    new = _body(asked)

    def change(old: Content) -> Content:
        headers = rewrite(old.headers, dict(asked.headers)) if asked.headers else old.headers
        facts = {**old.facts, "headers": {**old.facts.get("headers", {}), **asked.headers}}
        facts["headers"] = {k: v for k, v in facts["headers"].items() if v is not None}
        return Content(old.body if new is None else new, headers, facts)

    return change


def _body(asked: Edit) -> bytes | None:
    if asked.body is not None and asked.text is not None:
        raise _bad_body("Both `body` and `text` were sent.", "Send one of them.")
    if asked.text is not None:
        return asked.text.encode()
    if asked.body is None:
        return None
    try:
        return base64.b64decode(asked.body, validate=True)
    except (binascii.Error, ValueError):
        raise _bad_body("`body` is not base64.", "Send plain text as `text`.") from None


def _unexpected(letters: int, expected: int | None) -> Problem:
    return Problem(
        409,
        "Another number of letters",
        f"The filter takes {letters} letters, not {expected}; nothing was done.",
        hint="Letters come and go: look again with `dry_run`, then send the new number.",
    )


def _no_edits() -> Problem:
    hint = "Set ledger.edit = true and start the service again, if letters may be changed here."
    return Problem(403, "Letters are not edited here", "ledger.edit is false.", hint=hint)


def _not_open(state: str) -> Problem:
    hint = (
        "Only parked letters and those that came back can be edited; restore a discarded one first."
    )
    return Problem(409, "The letter is not open", f"The letter is {state}.", hint=hint)


def _unchanged() -> Problem:
    hint = "Send another body or other headers."
    return Problem(409, "Nothing would change", "The edit leaves the letter as it is.", hint=hint)


def _bad_body(detail: str, hint: str) -> Problem:
    return Problem(422, "The body cannot be used", detail, hint=hint)
