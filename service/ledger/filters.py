"""Which letters: the same typed filter for lists, replays, discards and exports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, FromClause, String, and_, cast, or_, true

from service.core.states import LetterState
from service.ledger.tables import LETTERS


@dataclass(frozen=True, slots=True)
class Filter:
    """Every field that is given must hold; several values of one field are alternatives."""

    ids: tuple[str, ...] = ()
    states: tuple[LetterState, ...] = ()
    flow: str | None = None
    queue: str | None = None
    """The dead queue it was taken from."""
    origin_queue: str | None = None
    routing_key: str | None = None
    cause: str | None = None
    letter: str | None = None
    """The sender's message id."""
    error_type: str | None = None
    header: tuple[str, str] | None = None
    """A header of this name with this text."""
    text: str | None = None
    """Somewhere in the error, the reason or the message id; upper and lower case alike."""
    since: datetime | None = None
    until: datetime | None = None
    """By the newest burial: since ≤ buried < until."""


def where(wanted: Filter, letters: FromClause = LETTERS) -> ColumnElement[bool]:
    """The filter as SQL; every value is a bound parameter."""
    return and_(true(), *_conditions(wanted, letters))


def _conditions(wanted: Filter, letters: FromClause) -> Iterator[ColumnElement[bool]]:
    if wanted.ids:
        yield letters.c.id.in_(wanted.ids)
    if wanted.states:
        yield letters.c.state.in_([state.value for state in wanted.states])
    for name in ("flow", "queue", "origin_queue", "routing_key", "cause", "letter", "error_type"):
        if (value := getattr(wanted, name)) is not None:
            yield letters.c[name] == value
    if wanted.header is not None:
        name, value = wanted.header
        yield cast(letters.c.facts["headers"][name].as_string(), String) == value
    if wanted.text:
        columns = (letters.c.error, letters.c.reason, letters.c.letter)
        yield or_(*(column.icontains(wanted.text, autoescape=True) for column in columns))
    if wanted.since is not None:
        yield letters.c.buried_at >= wanted.since
    if wanted.until is not None:
        yield letters.c.buried_at < wanted.until
