"""`dlo replays`: the jobs that send letters back."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.calling import caller
from service.cli.consent import Why
from service.cli.listing import LimitOption, facts, moment, short
from service.cli.listing import show as show_list
from service.cli.replaying import REPLAYS, job_rows, path, verdict
from service.cli.replaying import watch as watch_job
from service.cli.screen import Form, FormOption, screen_of

app = typer.Typer(no_args_is_help=True, help="The jobs that send letters back.")

Id = Annotated[str, typer.Argument(help="The replay's id.", metavar="ID")]

COLUMNS = (
    ("id", lambda job: job["id"]),
    ("state", lambda job: job["state"]),
    ("letters", lambda job: job["total"]),
    ("who", lambda job: short(job["who"], 24)),
    ("since", lambda job: moment(job["created_at"])),
    ("says", lambda job: short(job["says"])),
)


@app.command("list")
def list_(context: typer.Context, limit: LimitOption = 50, output: FormOption = Form.TABLE) -> None:
    """List replays, the newest first."""
    show_list(screen_of(context), output, caller(context).pages(REPLAYS, {}, limit), COLUMNS)


@app.command()
def show(context: typer.Context, id: Id, output: FormOption = Form.TABLE) -> None:
    """Show a replay and what became of its letters."""
    job = caller(context).get(f"{REPLAYS}/{path(id)}")
    facts(screen_of(context), output, job, job_rows(job))


@app.command()
def watch(context: typer.Context, id: Id, output: FormOption = Form.TABLE) -> None:
    """Watch a replay to its end; Ctrl-C leaves it running."""
    screen = screen_of(context)
    job = watch_job(screen, caller(context), path(id))
    facts(screen, output, job, job_rows(job))
    raise typer.Exit(verdict(job))


@app.command()
def pause(context: typer.Context, id: Id, why: Why = "") -> None:
    """Send nothing more until it is resumed."""
    _say(context, id, "pause", why)


@app.command()
def resume(context: typer.Context, id: Id, why: Why = "") -> None:
    """Go on where it was paused."""
    _say(context, id, "resume", why)


@app.command()
def stop(context: typer.Context, id: Id, why: Why = "") -> None:
    """End it: what was not sent stays parked."""
    _say(context, id, "stop", why)


def _say(context: typer.Context, id_: str, verb: str, why: str) -> None:
    job = caller(context).post(f"{REPLAYS}/{path(id_)}/{verb}", {"why": why})
    screen_of(context).say(f"replay {id_}: {verb} asked for; it is {job['state']}")
