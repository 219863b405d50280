"""How a page of letters is cut: newest first, along one index, and never further than a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    Subquery,
    func,
    literal,
    select,
    tuple_,
    union_all,
)

from service.core.states import LetterState
from service.ledger.filters import Filter, where
from service.ledger.tables import LETTERS

WINDOW = 20_000
"""Letters a page looks at where no index knows the filter; what lies beyond is the next page's."""

NUMBER = LETTERS.c.number

LAST = 2**63 - 1

Condition = ColumnElement[bool]
Columns = tuple[ColumnElement[Any], ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """Down an index: the names it begins with, and their values; then it goes by number."""

    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        """What the index is sorted by."""
        return (*(LETTERS.c[name] for name in self.names), NUMBER)

    def between(self, before: int | None, floor: int | None) -> Condition:
        """The part of the index from the floor up to, and without, `before`.

        As rows, compared with rows: told that the columns are equal, PostgreSQL would drop them from
        the order, walk the primary key instead, and look at every letter that is not wanted.
        """
        here = tuple_(*self.columns)
        low = tuple_(*map(literal, self.values), literal(floor or 0, NUMBER.type))
        high = tuple_(*map(literal, self.values), literal(before or LAST, NUMBER.type))
        return (here >= low) & (here < high)


@dataclass(frozen=True, slots=True)
class Few:
    """A handful of letters that an index finds at once; they are sorted."""

    condition: Condition

    @property
    def columns(self) -> Columns:
        """What they are sorted by."""
        return (NUMBER,)

    def between(self, before: int | None, floor: int | None) -> Condition:
        """Those from the floor up to, and without, `before`."""
        return self.condition & ((floor or 0) <= NUMBER) & ((before or LAST) > NUMBER)


@dataclass(frozen=True, slots=True)
class Way:
    """Walks that together meet every letter of a filter, and no letter twice.

    `rest` is what the index does not decide, and every letter on the way is asked.
    """

    walks: tuple[Walk | Few, ...]
    rest: Filter

    @property
    def is_short(self) -> bool:
        """Every letter on the way is one of the filter, so a page is as long as it is wide."""
        return self.rest == Filter()


def way(wanted: Filter) -> Way:
    """The one index that a page of this filter is cut along, the most selective of them."""
    states = tuple(dict.fromkeys(state.value for state in wanted.states or LetterState))
    if wanted.ids:
        return Way((Few(LETTERS.c.id.in_(wanted.ids)),), replace(wanted, ids=()))
    if wanted.letter is not None:
        return Way((Few(LETTERS.c.letter == wanted.letter),), replace(wanted, letter=None))
    if wanted.cause is not None:
        walks = tuple(Walk(("cause", "state"), (wanted.cause, state)) for state in states)
        return Way(walks, replace(wanted, cause=None, states=()))
    if wanted.origin_queue is not None:
        walk = Walk(("origin_queue",), (wanted.origin_queue,))
        return Way((walk,), replace(wanted, origin_queue=None))
    if wanted.routing_key is not None:
        walk = Walk(("routing_key",), (wanted.routing_key,))
        return Way((walk,), replace(wanted, routing_key=None))
    if wanted.states:
        walks = tuple(Walk(("state",), (state,)) for state in states)
        return Way(walks, replace(wanted, states=()))
    if wanted.flow is not None:
        return Way((Walk(("flow",), (wanted.flow,)),), replace(wanted, flow=None))
    return Way((Walk(),), wanted)


def cut(
    wanted: Filter, names: Sequence[str], limit: int, before: int | None, floor: int | None
) -> Select[*tuple[Any, ...]]:
    """The newest `limit` letters of the filter, older than `before` and not beyond the floor."""
    path = way(wanted)
    parts = [_part(walk, path, limit, before, floor) for walk in path.walks]
    every = union_all(*(select(part) for part in parts)).subquery()
    return select(*(every.c[name] for name in names)).order_by(every.c.number.desc()).limit(limit)


def _part(
    walk: Walk | Few, path: Way, limit: int, before: int | None, floor: int | None
) -> Subquery:
    """One walk. Where letters are asked on the way, the walk comes first, behind a limit: a planner
    that guesses how few they are would rather read the table."""
    on_the_way = _walked(walk, before, floor, limit if path.is_short else WINDOW + 1)
    if path.is_short:
        return on_the_way
    order = (on_the_way.c[column.name].desc() for column in walk.columns)
    asked = select(on_the_way).where(where(path.rest, on_the_way))
    return asked.order_by(*order).limit(limit).subquery()


def _walked(walk: Walk | Few, before: int | None, floor: int | None, limit: int) -> Subquery:
    light = [column for column in LETTERS.c if not isinstance(column.type, LargeBinary)]
    query = select(*light).where(walk.between(before, floor))
    return query.order_by(*(column.desc() for column in walk.columns)).limit(limit).subquery()


def floor_of(wanted: Filter, before: int | None) -> Select[int | None]:
    """Where a page must stop looking: the number of the last letter within the window, if any."""
    parts = [
        select(NUMBER)
        .where(walk.between(before, None))
        .order_by(*(column.desc() for column in walk.columns))
        .offset(WINDOW)
        .limit(1)
        .subquery()
        for walk in way(wanted).walks
    ]
    every = union_all(*(select(part) for part in parts)).subquery()
    return select(func.max(every.c.number))
