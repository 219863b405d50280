"""`dlo config`: the settings that hold."""

from collections.abc import Iterator, Mapping

import typer

from service.cli.screen import Output, OutputOption, screen_of
from service.settings import load, shown

app = typer.Typer(no_args_is_help=True, help="The settings that hold.")


@app.callback()
def config() -> None:
    """The settings that hold."""


@app.command()
def show(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Print every setting, secrets masked."""
    screen, settings = screen_of(context), shown(load())
    match output:
        case Output.JSON:
            screen.json(settings)
        case Output.TABLE:
            screen.table(("setting", "value"), _lines(settings))


def _lines(settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", text) for inner, text in _lines(value))
        else:
            yield key, _text(value)


def _text(value: object) -> str:
    match value:
        case None:
            return "(none)"
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(map(_text, value))
        case _:
            return str(value)
