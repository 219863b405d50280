"""How a page of letters is cut: newest first, along one index, and never further than a bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, true, union_all

from service.core.states import LetterState
from service.ledger.filters import Filter, where
from service.ledger.tables import LETTERS

WINDOW = 20_000
"""Letters a page looks at where no index knows the filter; what lies beyond is the next page's."""

NUMBER = LETTERS.c.number

Condition = ColumnElement[bool]
Columns = tuple[ColumnElement[Any], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """Walks down an index that together meet every letter of a filter, and no letter twice.

    `rest` is what the index does not decide, and every letter on the way is asked.
    """

    walks: tuple[Condition, ...]
    rest: Filter

    @property
    def is_short(self) -> bool:
        """Every letter on the way is one of the filter, so a page is as long as it is wide."""
        return self.rest == Filter()


def way(wanted: Filter) -> Way:
    """The one index that a page of this filter is cut along, the most selective of them."""
    if wanted.ids:
        return Way((LETTERS.c.id.in_(wanted.ids),), replace(wanted, ids=()))
    if wanted.cause is not None:
        states = wanted.states or tuple(LetterState)
        walks = tuple((LETTERS.c.cause == wanted.cause) & is_state for is_state in _each(states))
        return Way(walks, replace(wanted, cause=None, states=()))
    for name, value, rest in (
        ("letter", wanted.letter, replace(wanted, letter=None)),
        ("origin_queue", wanted.origin_queue, replace(wanted, origin_queue=None)),
        ("routing_key", wanted.routing_key, replace(wanted, routing_key=None)),
    ):
        if value is not None:
            return Way((LETTERS.c[name] == value,), rest)
    if wanted.states:
        return Way(_each(wanted.states), replace(wanted, states=()))
    if wanted.flow is not None:
        return Way((LETTERS.c.flow == wanted.flow,), replace(wanted, flow=None))
    return Way((true(),), wanted)


def cut(
    wanted: Filter, columns: Columns, limit: int, before: int | None, floor: int | None
) -> Select[*tuple[Any, ...]]:
    """The newest `limit` letters of the filter, older than `before` and not beyond the floor."""
    path = way(wanted)
    rest = () if path.is_short else (where(path.rest),)
    parts = [
        select(*columns)
        .where(walk, *rest, *_bounds(before, floor))
        .order_by(NUMBER.desc())
        .limit(limit)
        .subquery()
        for walk in path.walks
    ]
    every = union_all(*(select(part) for part in parts)).subquery()
    return select(every).order_by(every.c.number.desc()).limit(limit)


def floor_of(wanted: Filter, before: int | None) -> Select[int | None]:
    """Where a page must stop looking: the number of the last letter within the window, if any."""
    parts = [
        select(NUMBER)
        .where(walk, *_bounds(before, None))
        .order_by(NUMBER.desc())
        .offset(WINDOW)
        .limit(1)
        .subquery()
        for walk in way(wanted).walks
    ]
    every = union_all(*(select(part) for part in parts)).subquery()
    return select(func.max(every.c.number))


def _each(states: tuple[LetterState, ...]) -> tuple[Condition, ...]:
    return tuple(LETTERS.c.state == state.value for state in dict.fromkeys(states))


def _bounds(before: int | None, floor: int | None) -> tuple[Condition, ...]:
    younger = () if before is None else (before > NUMBER,)
    return younger if floor is None else (*younger, floor <= NUMBER)
