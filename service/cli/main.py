"""`dlo`, the command line: one file per noun, and one place that says what went wrong."""

import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from service.cli import config, db, doctor, drill, simulate, topology
from service.cli.screen import open_screen
from service.ledger.away import LedgerAway
from service.settings import BadSettings

FAILED, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="dlo", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.command("simulate")(simulate.simulate)
app.command("drill")(drill.drill)
app.command("doctor")(doctor.doctor)
app.add_typer(topology.app, name="topology")
app.add_typer(config.app, name="config")
app.add_typer(db.app, name="db")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"Dead Letter Office {version('dead-letter-office')}")
        raise typer.Exit


@app.callback()
def dlo(
    context: typer.Context,
    no_color: Annotated[bool, typer.Option("--no-color", help="Plain text.")] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Dead Letter Office: delayed retries and dead letters for RabbitMQ."""
    context.obj = open_screen(color=not no_color)


def main() -> None:
    """The entry point: a mistake is a sentence on stderr and an exit code, never a traceback."""
    # What libraries log on their way to an error is said by that error, in words.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        app()
    except BadSettings as bad:
        _end(f"The settings cannot be used:\n{_indented(str(bad))}", USAGE)
    except LedgerAway as away:
        _end(str(away), FAILED)
    except KeyboardInterrupt:
        _end("interrupted", INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the last resort of the command line
        _end(f"This should not have happened: {type(error).__name__}: {error}", FAILED)


def _indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.splitlines())


def _end(message: str, code: int) -> None:
    typer.echo(message, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
