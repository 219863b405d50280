"""A replay from the command line: plan, consent, start, and the job watched to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from service.cli.calling import Caller, Exit, Refusal, caller
from service.cli.choosing import Wanted
from service.cli.consent import consent, must_be_asked
from service.cli.listing import cell, facts
from service.cli.screen import Form, Screen, screen_of
from service.core import duration

REPLAYS = "/api/v1/replays"
ENDED = ("finished", "stopped")
EVERY = 0.5


class Attempts(StrEnum):
    """How often a replayed letter may fail."""

    CONTINUED = "continued"
    FRESH = "fresh"


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return duration.parse(text).total_seconds()
    except (ValueError, OverflowError) as fault:
        raise typer.BadParameter(str(fault)) from None


Rate = Annotated[float | None, typer.Option(min=0.01, help="Letters a second, at most.")]
Canary = Annotated[int | None, typer.Option(min=0, help="So many first, and wait; 0: none.")]
StopAt = Annotated[
    float | None,
    typer.Option("--stop", min=0, max=100, help="Stop when more than so many percent come back."),
]
Window = Annotated[
    str | None,
    typer.Option("--watch", help="How long a letter may take to come back.", metavar="DURATION"),
]
AttemptsOption = Annotated[
    Attempts | None, typer.Option(help="continued: one attempt; fresh: all its retries again.")
]
To = Annotated[str | None, typer.Option(help="Another queue than the one each died in.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Start it, print its id, and leave.")]


def request(
    wanted: Wanted,
    rate: float | None,
    canary: int | None,
    stop: float | None,
    window: str | None,
    attempts: Attempts | None,
    to: str | None,
    why: str,
) -> dict[str, Any]:
    """What the API is asked for; what is not given is the service's default."""
    given = {
        "rate": rate,
        "canary": canary,
        "stop_percent": stop,
        "watch": window if _seconds(window) is not None else None,
        "attempts": attempts and attempts.value,
        "target": to,
    }
    said = {name: value for name, value in given.items() if value is not None}
    return {"filter": wanted, "why": why, **said}


def replay(
    context: typer.Context,
    asked: dict[str, Any],
    *,
    dry_run: bool,
    yes: bool,
    wait: bool,
    form: Form,
) -> None:
    """Show the plan, ask, start the job, and watch it."""
    service, screen = caller(context), screen_of(context)
    if not dry_run:
        must_be_asked(screen, yes=yes)
    plan = service.post(REPLAYS, {**asked, "dry_run": True})
    if dry_run:
        facts(screen, form, {"id": "", **plan}, plan_rows(plan))
        return
    if not plan["total"]:
        screen.say("there is nothing to send" + _because(plan))
        raise typer.Exit(Exit.FAILED if plan["without_origin"] else 0)
    for name, value in plan_rows(plan):
        screen.say(f"{name}: {cell(value)}")
    consent(screen, f"Replay {plan['total']} letters?", yes=yes)
    # One key for this command: whatever the line does, it starts one job.
    job = service.post(REPLAYS, asked, {"Idempotency-Key": uuid4().hex})
    ended = watch(screen, service, job["id"]) if wait else job
    facts(screen, form, ended, job_rows(ended))
    raise typer.Exit(verdict(ended) if wait else 0)


def watch(screen: Screen, service: Caller, id_: str) -> Any:
    """Draw the job's progress on stderr until it has ended; Ctrl-C leaves it running."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    says = TextColumn("{task.fields[says]}")
    with Progress(*columns, TimeElapsedColumn(), says, console=screen.stderr) as progress:
        task = progress.add_task(f"replay {id_}", total=None, says="")
        try:
            for job in _looks(service, id_):
                done = job["total"] - sum(count(job, name) for name in ("pending", "claimed"))
                progress.update(task, total=job["total"], completed=done, says=_line(job))
        except KeyboardInterrupt:
            screen.say(f"the replay goes on without you; stop it with: dlo replays stop {id_}")
            raise
    return job


def _looks(service: Caller, id_: str) -> Iterator[Any]:
    while True:
        job = service.get(f"{REPLAYS}/{id_}")
        yield job
        if job["state"] in ENDED:
            return
        time.sleep(EVERY)


def verdict(job: Any) -> int:
    """0 where all went home, 5 where some did not, 1 where the job stopped itself."""
    if job["state"] == "stopped":
        return Exit.FAILED
    astray = ("back", "unroutable", "skipped", "stopped")
    return Exit.PARTLY if any(count(job, name) for name in astray) else 0


def count(job: Any, state: str) -> int:
    """How many letters of a job had this result."""
    return int(job["letters"].get(state, 0))


def plan_rows(plan: Any) -> Iterator[tuple[str, object]]:
    """A plan for people."""
    terms = plan["terms"]
    yield "letters", plan["total"]
    for line in plan["queues"]:
        yield f"to {line['queue']}", f"{line['letters']} letters, {_stands(line)}"
    pace = (
        f"{terms['canary']} first, then at most {terms['rate']:g}/s, each watched {terms['watch']}"
    )
    yield "how", f"{pace}; stops when more than {terms['stop_percent']:g} % come back"
    yield "takes about", plan["duration"]
    for warning in plan["warnings"]:
        yield "but", warning


def _because(plan: Any) -> str:
    return "".join(f"; {warning}" for warning in plan["warnings"])


def _stands(line: Any) -> str:
    if line["exists"] is None:
        return str(line["says"])
    if not line["exists"]:
        return "which does not exist"
    return f"{line['consumers']} consumers, {line['ready']} waiting there"


def job_rows(job: Any) -> Iterator[tuple[str, object]]:
    """A job for people."""
    yield "replay", job["id"]
    yield "state", f"{job['state']}: {job['says']}" if job["says"] else job["state"]
    yield "letters", job["total"]
    for state, many in job["letters"].items():
        if many:
            yield f"  {state}", many


def path(id_: str) -> str:
    """An id as it stands in a URL; anything else is nobody's."""
    if not id_.isalnum() or not id_.isascii():
        raise Refusal("There is no such replay; `dlo replays list` lists them.", Exit.NOT_FOUND)
    return id_


def _line(job: Any) -> str:
    names = (name for name in ("back", "handled", "quiet", "unroutable") if count(job, name))
    parts = [f"{count(job, name)} {name}" for name in names]
    return ", ".join((job["state"], *parts))
