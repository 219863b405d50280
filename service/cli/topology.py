"""`dlo topology`: what the service declares on RabbitMQ, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.flows import sends_of, topology_of
from service.cli.screen import Screen, screen_of
from service.settings import load

if TYPE_CHECKING:
    from service.topology.faults import Fault
    from service.topology.tables import Topology

app = typer.Typer(no_args_is_help=True, help="What the service declares on RabbitMQ.")


class Form(StrEnum):
    """How a topology is printed."""

    TABLE = "table"
    MERMAID = "mermaid"
    JSON = "json"


FormOption = Annotated[
    Form,
    typer.Option(
        "--output", "-o", help="table for people, mermaid for a drawing, json for scripts."
    ),
]


@app.command()
def show(context: typer.Context, output: FormOption = Form.TABLE) -> None:
    """Print exchanges, queues with their arguments, and bindings, as the settings have them."""
    from service.topology.drawing import mermaid

    screen, topology = screen_of(context), topology_of(load())
    match output:
        case Form.TABLE:
            _print_tables(screen, topology)
        case Form.MERMAID:
            screen.stdout.out(mermaid(topology).rstrip(), highlight=False)
        case Form.JSON:
            screen.json(document(topology))


@app.command()
def check(context: typer.Context) -> None:
    """Look for keys that nothing takes, dead ends and loops; exit 1 where there are any."""
    from service.topology.faults import faults

    settings = load()
    raise typer.Exit(report(screen_of(context), faults(topology_of(settings), sends_of(settings))))


def report(screen: Screen, faults: Sequence[Fault]) -> int:
    """A line for each fault, and the exit code."""
    for line in map(str, faults) if faults else ("no faults",):
        screen.stdout.out(line, highlight=False)
    return 1 if faults else 0


def document(topology: Topology) -> dict[str, object]:
    """The three tables as plain values."""
    return {
        "exchanges": [{"name": row.name, "type": row.type.value} for row in topology.exchanges],
        "queues": [{"name": row.name, "arguments": dict(row.arguments)} for row in topology.queues],
        "bindings": [
            {"exchange": row.exchange.name, "queue": row.queue.name, "key": row.key}
            for row in topology.bindings
        ],
    }


def _print_tables(screen: Screen, topology: Topology) -> None:
    from service.topology.drawing import tables

    for number, table in enumerate(tables(topology)):
        if number:
            screen.stdout.out("")
        screen.table(table.columns, table.rows)
