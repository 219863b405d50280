"""`dlo`, the command line: one file per noun, and one place that says what went wrong."""

import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from service.cli import (
    causes,
    config,
    db,
    doctor,
    drill,
    letters,
    replays,
    routes,
    simulate,
    status,
    topology,
)
from service.cli.anywhere import hoisted
from service.cli.calling import WHOM, Refusal, Whom
from service.cli.screen import open_screen
from service.ledger.away import LedgerAway
from service.settings import BadSettings

FAILED, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="dlo", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.command("status")(status.status)
app.add_typer(causes.app, name="causes")
app.add_typer(letters.app, name="letters")
app.add_typer(replays.app, name="replays")
app.add_typer(routes.app, name="routes")
app.command("adopt")(status.adopt)
app.command("audit")(status.audit)
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
    url: Annotated[str, typer.Option(envvar="DLO_URL", help="The service to speak to.")] = "",
    token: Annotated[
        str, typer.Option(envvar="DLO_TOKEN", help="Who you are, where it asks.", show_envvar=True)
    ] = "",
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
    context.meta[WHOM] = Whom(url, token)


def main() -> None:
    """The entry point: a mistake is a sentence on stderr and an exit code, never a traceback."""
    # What libraries log on their way to an error is said by that error, in words.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        app(args=hoisted(sys.argv[1:]))
    except Refusal as refusal:
        _end(str(refusal), refusal.code)
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
