"""Editing a letter: a new row beside the old one, which is set aside and stays restorable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Row, select, update

from service.core.identity import body_digest, burial_digest
from service.core.states import OPEN, LetterState
from service.ledger.again import again
from service.ledger.audit import Deed, write
from service.ledger.book import Book
from service.ledger.letters import NoLetter
from service.ledger.tables import LETTERS


@dataclass(frozen=True, slots=True)
class Content:
    """What an operator may change of a letter."""

    body: bytes
    headers: bytes
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Edited:
    """The new letter."""

    id: str


@dataclass(frozen=True, slots=True)
class NotOpen:
    """Only a parked or returned letter can be edited; this one is not."""

    state: LetterState


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The edit changes nothing."""


Change = Callable[[Content], Content]


async def edit(
    book: Book, id_: str, change: Change, deed: Deed, now: datetime
) -> Edited | NotOpen | Unchanged | NoLetter:
    """A parked copy with the changes; the original is discarded, so that a replay sends one of them."""

    async def verb() -> Edited | NotOpen | Unchanged | NoLetter:
        async with book.writing() as connection:
            asked = select(LETTERS).where(LETTERS.c.id == id_).with_for_update()
            row = (await connection.execute(asked)).one_or_none()
            if row is None:
                return NoLetter()
            if row.state not in OPEN:
                return NotOpen(LetterState(row.state))
            old = Content(bytes(row.body), bytes(row.headers), dict(row.facts))
            new = change(old)
            if (new.body, new.headers) == (old.body, old.headers):
                return Unchanged()
            copy = _copy(row, new, now)
            await connection.execute(LETTERS.insert().values(**copy))
            aside = update(LETTERS).where(LETTERS.c.number == row.number)
            await connection.execute(
                aside.values(state=LetterState.DISCARDED.value, changed_at=now)
            )
            details = {**deed.details, "edited_as": copy["id"]}
            await write(connection, replace(deed, details=details), now)
        return Edited(copy["id"])

    return await again(verb)


def _copy(row: Row[Any], new: Content, now: datetime) -> dict[str, Any]:
    """Everything of the original but what was changed, and a life of its own."""
    return {
        **{c.name: getattr(row, c.name) for c in LETTERS.c if c.name != "number"},
        "id": uuid4().hex,
        "state": LetterState.PARKED.value,
        "body": new.body,
        "headers": new.headers,
        "facts": new.facts,
        "size": len(new.body),
        "digest": burial_digest(bytes(row.properties), new.headers, body_digest(new.body)),
        "burials": 1,
        "replays": 0,
        "replay": None,
        "filed_at": now,
        "changed_at": now,
        "edited_from": row.number,
    }
