"""`/api/v1/letters`: lists, one letter, its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from service.ledger.book import Book
from service.ledger.letters import NoLetter, body_of, count, find, page
from service.web.access import Person, person
from service.web.api.asking import FilterOfLetters, LetterPath, is_id
from service.web.api.cursors import cursor, number_of
from service.web.api.letter_shapes import (
    Counted,
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
    """Looking at letters."""
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

    return routes


def unknown() -> Problem:
    """404."""
    hint = (
        f"GET {PATH} lists letters with their ids; what was discarded is forgotten after a while."
    )
    return Problem(404, "No such letter", "There is no letter with this id.", hint=hint)
