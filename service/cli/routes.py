"""`dlo routes`: which routing keys are retried, how often and when."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from service.cli.calling import Exit, Refusal, caller
from service.cli.consent import Why, Yes, consent
from service.cli.listing import facts
from service.cli.listing import show as show_list
from service.cli.screen import Form, FormOption, screen_of

ROUTES = "/api/v1/routes"
app = typer.Typer(no_args_is_help=True, help="Which routing keys are retried, and how.")

Key = Annotated[str, typer.Argument(help="A routing key, or a pattern like order.*", metavar="KEY")]

COLUMNS = (
    ("key", lambda route: route["name"]),
    ("from", lambda route: route["source"]),
    ("says", lambda route: route["says"]),
    ("returns to", lambda route: route["return_to"]),
    ("wrong", lambda route: "; ".join(route["complaints"])),
)


@app.command("list")
def list_(context: typer.Context, output: FormOption = Form.TABLE) -> None:
    """List routes; rows of the table win over those of the settings."""
    found = caller(context).get(ROUTES)["items"]
    named = [{"id": route["name"], **route} for route in found]
    show_list(screen_of(context), output, named if output is Form.ID else found, COLUMNS)


@app.command("set")
def set_(
    context: typer.Context,
    key: Key,
    max_retries: Annotated[
        int | None, typer.Option(min=-1, help="How often; -1 without end; not given: the default.")
    ] = None,
    delay: Annotated[
        list[str] | None, typer.Option(help="A wait, one of the tiers; repeat, in order.")
    ] = None,
    return_to: Annotated[str, typer.Option(help="queue, or exchange.")] = "queue",
    why: Why = "",
) -> None:
    """Make a route, or change it; a running service follows within a second."""
    service, at = caller(context), _at(key)
    seen = service.tag(at)
    wanted = {"max_retries": max_retries, "delays": delay or [], "return_to": return_to, "why": why}
    made = service.act("PUT", at, wanted, {"If-Match": seen} if seen else None)
    screen_of(context).say(f"{key}: {made['says']}")


@app.command()
def remove(context: typer.Context, key: Key, yes: Yes = False) -> None:
    """Remove a route from the table; its letters are then dead letters at their first failure."""
    service, screen, at = caller(context), screen_of(context), _at(key)
    seen = service.tag(at)
    if not seen:
        raise Refusal(f"The table has no route {key!r}.", Exit.NOT_FOUND)
    consent(screen, f"Remove the route {key!r}?", yes=yes)
    service.act("DELETE", at, headers={"If-Match": seen})
    screen.say(f"{key}: removed")


@app.command("test")
def try_(context: typer.Context, key: Key, output: FormOption = Form.TABLE) -> None:
    """Say which route takes a key, and what would happen when to a letter that always fails."""
    tested = caller(context).get(f"{ROUTES}/test", {"key": key})
    facts(screen_of(context), output, {"id": tested["route"], **tested}, _rows(tested))


def _rows(tested: Any) -> list[tuple[str, object]]:
    source = f"{tested['route']} ({tested['source']})" if tested["route"] else "none"
    steps = [(f"retry {s['retry']}", f"after {s['after']}, at {s['at']}") for s in tested["steps"]]
    return [("key", tested["key"]), ("route", source), *steps, ("end", tested["ends"])]


def _at(key: str) -> str:
    return f"{ROUTES}/{quote(key, safe='')}"
