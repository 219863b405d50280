"""`/api/v1/letters`: lists, one letter, its bytes; discard, restore and edit."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, assert_never

from fastapi import APIRouter, Depends, Query, Response

from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.discards import Moved, Otherwise, discard, discardable, restorable, restore
from service.ledger.edits import Content, Edited, NotOpen, Unchanged, edit
from service.ledger.filters import Filter
from service.ledger.letters import NoLetter, body_of, count, find, page
from service.web.access import Person, person
from service.web.api.asking import FilterOfLetters, LetterPath, is_id
from service.web.api.cursors import cursor, number_of
from service.web.api.letter_shapes import (
    ActOnMany,
    Counted,
    Edit,
    EditedLetter,
    HowMany,
    LetterLine,
    Letters,
    LettersAsked,
    OneLetter,
    one_letter,
)
from service.web.api.why import Rule, no_rule, why
from service.web.problems import Problem, documented

PATH = "/api/v1/letters"
MOST_COUNTED = 10_000
KIND = "letters"

Clock = Callable[[], datetime]
Who = Annotated[Person, Depends(person)]
Act = Callable[[Book, Filter, Deed, int | None, datetime], Awaitable[Moved | Otherwise]]
Counting = Callable[[Book, Filter], Awaitable[int]]
Decode = Callable[[bytes], tuple[dict[str, object], str]]
Rewrite = Callable[[bytes, dict[str, Any]], bytes]


def utc_now() -> datetime:
    """The clock of a running service."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Desk:
    """What the letters' requests need beside the ledger; the edge's part is handed in."""

    decode: Decode
    """Raw headers → what can be read of them, and what cannot."""
    rewrite: Rewrite
    """Raw headers with some changed, dropped (None) or added."""
    rule: Rule = no_rule
    may_edit: bool = False
    clock: Clock = utc_now


def router(book: Book, desk: Desk) -> APIRouter:
    """Everything about letters but their copies."""
    routes = APIRouter(prefix=PATH, tags=["letters"])

    @routes.get("", responses=documented(401, 403, 422, 503))
    async def list_(asked: Annotated[LettersAsked, Query()]) -> Letters:
        """A page of letters, newest first."""
        before = number_of(asked.cursor, KIND)
        found = await page(book, asked.filter(), before, asked.limit)
        return Letters(
            items=[LetterLine.model_validate(letter) for letter in found.letters],
            next=None if found.next is None else cursor(KIND, found.next),
        )

    @routes.get("/count", responses=documented(401, 403, 422, 503))
    async def count_(asked: Annotated[FilterOfLetters, Query()]) -> Counted:
        """How many letters a filter takes; beyond 10 000 they may be left uncounted."""
        many = await count(book, asked.filter(), MOST_COUNTED + 1)
        return Counted(letters=min(many, MOST_COUNTED), more=many > MOST_COUNTED)

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

    @routes.get("/{id}", responses=documented(401, 403, 404, 503))
    async def show(id: LetterPath) -> OneLetter:
        """One letter: content, headers, history, and why it lies here."""
        whole = await find(book, id) if is_id(id, 32) else NoLetter()
        if isinstance(whole, NoLetter):
            raise unknown()
        headers, fault = desk.decode(whole.headers)
        return one_letter(whole, why(whole, desk.rule), headers, fault)

    @routes.get(
        "/{id}/body",
        response_class=Response,
        responses={
            200: {"content": {"application/octet-stream": {}}, "description": "The bytes."},
            **documented(401, 403, 404, 503),
        },
    )
    async def body(id: LetterPath) -> Response:
        """The whole body, byte for byte, as a download."""
        found = await body_of(book, id) if is_id(id, 32) else NoLetter()
        if isinstance(found, NoLetter):
            raise unknown()
        # Never the sender's content type: a browser would run what a stranger wrote.
        headers = {
            "Content-Disposition": f'attachment; filename="{id}.bin"',
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
        return Response(found, media_type="application/octet-stream", headers=headers)

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

    return routes


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


def unknown() -> Problem:
    """404."""
    hint = (
        f"GET {PATH} lists letters with their ids; what was discarded is forgotten after a while."
    )
    return Problem(404, "No such letter", "There is no letter with this id.", hint=hint)


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
