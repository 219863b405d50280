"""Where the command line speaks: data on stdout, everything else on stderr."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from json import dumps
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

# A pipe has no width: wide enough that no value is folded.
PIPE_WIDTH = 400


class Output(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="table for people, json for scripts.")
]


class Form(StrEnum):
    """How a list is printed."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    ID = "id"


FormOption = Annotated[
    Form,
    typer.Option("--output", "-o", help="table for people; json, ndjson or id for scripts."),
]


@dataclass(frozen=True, slots=True)
class Screen:
    """The two streams of one command."""

    stdout: Console
    stderr: Console

    def table(self, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """A table on stdout; without a head where its columns have no names."""
        names = tuple(heads)
        table = Table(*names, box=None, pad_edge=False, header_style="bold", show_header=any(names))
        for row in rows:
            table.add_row(*row)
        self.stdout.print(table, markup=False, highlight=False)

    def json(self, data: object) -> None:
        """One JSON document on stdout."""
        self.stdout.out(dumps(data, indent=2, ensure_ascii=False), highlight=False)

    def say(self, line: str) -> None:
        """A line on stderr: progress, or what went wrong."""
        self.stderr.out(line, highlight=False)


def open_screen(*, color: bool) -> Screen:
    """The screen of this process; without colour where asked or where there is no terminal."""
    return Screen(_console(color=color, stderr=False), _console(color=color, stderr=True))


def screen_of(context: typer.Context) -> Screen:
    """The screen the root command opened."""
    screen = context.find_object(Screen)
    return open_screen(color=True) if screen is None else screen


def _console(*, color: bool, stderr: bool) -> Console:
    console = Console(stderr=stderr, no_color=True if not color else None, soft_wrap=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console
