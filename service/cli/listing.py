"""A list, as it was asked for: a table for people, JSON, lines of JSON or bare ids for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from json import dumps
from typing import Annotated, Any

import typer

from service.cli.screen import Form, Screen

Item = Mapping[str, Any]
Column = tuple[str, Callable[[Item], object]]

LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, help="At most so many, the newest first.")
]


def show(screen: Screen, form: Form, items: Iterable[Item], columns: Iterable[Column]) -> None:
    """Print a list; an empty one is `[]`, and no error."""
    match form:
        case Form.TABLE:
            _table(screen, list(items), tuple(columns))
        case Form.JSON:
            screen.json(list(items))
        case Form.NDJSON:
            for item in items:
                screen.stdout.out(dumps(item, ensure_ascii=False), highlight=False)
        case Form.ID:
            for item in items:
                screen.stdout.out(item["id"], highlight=False)


def facts(screen: Screen, form: Form, item: Item, rows: Iterable[tuple[str, object]]) -> None:
    """Print one thing: its facts below each other, or the JSON of it."""
    match form:
        case Form.TABLE:
            screen.table(("", ""), ((name, cell(value)) for name, value in rows))
        case Form.JSON:
            screen.json(item)
        case Form.NDJSON:
            screen.stdout.out(dumps(item, ensure_ascii=False), highlight=False)
        case Form.ID:
            screen.stdout.out(item["id"], highlight=False)


def cell(value: object) -> str:
    """A value in a table: one line, no control characters; a stranger wrote most of them."""
    match value:
        case None | "":
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case _:
            return "".join(c if c.isprintable() else " " for c in str(value))


def short(text: object, longest: int = 60) -> str:
    """As much of a text as a table has room for."""
    whole = cell(text)
    return whole if len(whole) <= longest else whole[: longest - 1] + "…"


def moment(text: str | None) -> str:
    """A moment to the second: `2026-03-01 03:00:00Z`."""
    return "–" if not text else text[:19].replace("T", " ") + "Z"


def _table(screen: Screen, items: list[Item], columns: tuple[Column, ...]) -> None:
    if not items:
        screen.stdout.out("[]", highlight=False)
        return
    rows = ([cell(value(item)) for _, value in columns] for item in items)
    screen.table((name for name, _ in columns), rows)
