"""`dlo causes`: letters that failed alike, and what is known of why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from service.cli import letters, replaying
from service.cli.calling import Exit, Refusal, caller
from service.cli.consent import DryRun, Why, Yes
from service.cli.listing import LimitOption, facts, moment, short
from service.cli.listing import show as show_list
from service.cli.screen import Form, FormOption, screen_of
from service.core import duration

CAUSES = "/api/v1/causes"
app = typer.Typer(no_args_is_help=True, help="Letters that failed alike.")

Id = Annotated[str, typer.Argument(help="The cause's id.", metavar="ID")]

COLUMNS = (
    ("id", lambda cause: cause["id"]),
    ("state", lambda cause: cause["state"]),
    ("open", lambda cause: cause["open"]),
    ("last seen", lambda cause: moment(cause["last_seen"])),
    ("24 h", lambda cause: sparkline(cause["hours"])),
    ("cause", lambda cause: short(cause["title"], 80)),
    ("owner", lambda cause: cause["owner"]),
)
BARS = "▁▂▃▄▅▆▇█"


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[
        list[str] | None,
        typer.Option(help="new, acknowledged, muted, resolved or regressed; repeat."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="With this in title, note or error type.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those without open letters.")] = False,
    limit: LimitOption = 50,
    output: FormOption = Form.TABLE,
) -> None:
    """List causes with open letters, the newest change first."""
    wanted = {"state": state or (), "text": text, "open": None if all_ else "true"}
    show_list(screen_of(context), output, caller(context).pages(CAUSES, wanted, limit), COLUMNS)


@app.command()
def show(context: typer.Context, id: Id, output: FormOption = Form.TABLE) -> None:
    """Show one cause: since when, where its letters come from, what is known."""
    cause = caller(context).get(f"{CAUSES}/{path(id)}")
    facts(screen_of(context), output, cause, _rows(cause))


@app.command()
def replay(
    context: typer.Context,
    id: Id,
    rate: replaying.Rate = None,
    canary: replaying.Canary = None,
    stop: replaying.StopAt = None,
    window: replaying.Window = None,
    attempts: replaying.AttemptsOption = None,
    to: replaying.To = None,
    why: Why = "",
    no_wait: replaying.NoWait = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Send the open letters of a cause back, governed: plan, canary, rate, automatic stop."""
    wanted = {"cause": path(id)}
    request = replaying.request(wanted, rate, canary, stop, window, attempts, to, why)
    replaying.replay(context, request, dry_run=dry_run, yes=yes, wait=not no_wait, form=output)


@app.command()
def discard(
    context: typer.Context, id: Id, why: Why = "", dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Discard the open letters of a cause; `dlo letters restore --cause` takes it back for a week."""
    letters.move(context, "discard", {"cause": path(id)}, why, dry_run=dry_run, yes=yes)


@app.command()
def acknowledge(context: typer.Context, id: Id, why: Why = "") -> None:
    """Say that somebody looks after it."""
    _say(context, id, "acknowledge", {"why": why})


@app.command()
def mute(
    context: typer.Context,
    id: Id,
    lasting: Annotated[str, typer.Option("--for", help="How long.", metavar="DURATION")] = "24h",
    why: Why = "",
) -> None:
    """Tell nobody of it for a while."""
    try:
        until = datetime.now(UTC) + duration.parse(lasting)
    except (ValueError, OverflowError) as fault:
        raise typer.BadParameter(str(fault)) from None
    _say(context, id, "mute", {"until": until.isoformat(), "why": why})


@app.command()
def unmute(context: typer.Context, id: Id, why: Why = "") -> None:
    """Tell people of it again."""
    _say(context, id, "unmute", {"why": why})


@app.command()
def resolve(context: typer.Context, id: Id, why: Why = "") -> None:
    """Say that it is mended: should it come again, it is a regression, and people are told."""
    _say(context, id, "resolve", {"why": why})


@app.command()
def note(
    context: typer.Context,
    id: Id,
    text: Annotated[str | None, typer.Argument(help="What is known of it.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who looks after it.")] = None,
) -> None:
    """Write down what is known of a cause, and who looks after it; what is not given stays."""
    if text is None and owner is None:
        raise typer.BadParameter("write a note, or --owner")
    service = caller(context)
    before = service.get(f"{CAUSES}/{path(id)}")
    words = {
        "note": before["note"] if text is None else text,
        "owner": before["owner"] if owner is None else owner,
    }
    service.act("PUT", f"{CAUSES}/{path(id)}/note", words)
    screen_of(context).say(f"cause {id}: noted")


def path(id_: str) -> str:
    """An id as it stands in a URL; anything else is nobody's."""
    if not id_.isalnum() or not id_.isascii():
        says = f"There is no cause {short(id_)!r}: ids are 16 digits and letters a–f."
        raise Refusal(says, Exit.NOT_FOUND)
    return id_


def sparkline(hours: list[int]) -> str:
    """Counts as bars: getting worse, or over?"""
    most = max(hours, default=0)
    if not most:
        return ""
    return "".join(BARS[round(count / most * (len(BARS) - 1))] if count else " " for count in hours)


def _say(context: typer.Context, id_: str, verb: str, words: dict[str, Any]) -> None:
    now = caller(context).post(f"{CAUSES}/{path(id_)}/{verb}", words)
    screen_of(context).say(f"cause {id_} is {now['state']}")


def _rows(cause: Any) -> Iterator[tuple[str, object]]:
    yield "id", cause["id"]
    yield "cause", cause["title"]
    yield "place", cause["place"]
    yield "state", cause["state"]
    yield "open letters", cause["open"]
    yield "burials", cause["burials"]
    yield "first seen", moment(cause["first_seen"])
    yield "last seen", moment(cause["last_seen"])
    yield "last 24 hours", sparkline(cause["hours"])
    yield "owner", cause["owner"]
    yield "note", cause["note"]
    for line in cause.get("breakdown", {}).get("lines", ()):
        yield (
            "from",
            f"{line['letters']} × {line['routing_key'] or '(no key)'} in {line['origin_queue']}",
        )
