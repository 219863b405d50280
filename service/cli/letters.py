"""`dlo letters`: the dead letters, one by one or many."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from service.cli import replaying
from service.cli.calling import Exit, Refusal, caller
from service.cli.choosing import Wanted, choosing, chosen
from service.cli.consent import DryRun, Why, Yes, consent, must_be_asked, said
from service.cli.listing import LimitOption, facts, moment, short
from service.cli.listing import show as show_list
from service.cli.screen import Form, FormOption, screen_of

LETTERS = "/api/v1/letters"
app = typer.Typer(no_args_is_help=True, help="The dead letters.")

Id = Annotated[str, typer.Argument(help="The letter's id.", metavar="ID")]
Ids = Annotated[list[str] | None, typer.Argument(help="Letters by their ids.", metavar="[ID]...")]

COLUMNS = (
    ("id", lambda letter: letter["id"]),
    ("state", lambda letter: letter["state"]),
    ("buried", lambda letter: moment(letter["buried_at"])),
    ("died in", lambda letter: short(letter["origin_queue"], 32)),
    ("key", lambda letter: short(letter["routing_key"], 32)),
    ("cause", lambda letter: letter["cause"]),
    ("error", lambda letter: short(_error(letter))),
)


@app.command("list")
@choosing
def list_(
    context: typer.Context,
    wanted: Wanted,
    limit: LimitOption = 50,
    output: FormOption = Form.TABLE,
) -> None:
    """List letters, the newest first."""
    found = caller(context).pages(LETTERS, wanted, limit)
    show_list(screen_of(context), output, found, COLUMNS)


@app.command()
def show(context: typer.Context, id: Id, output: FormOption = Form.TABLE) -> None:
    """Show one letter: where it died, why, and what was done with it."""
    letter = caller(context).get(f"{LETTERS}/{_path(id)}")
    facts(screen_of(context), output, letter, _rows(letter))


@app.command()
def body(context: typer.Context, id: Id) -> None:
    """Write a letter's body to stdout, byte for byte."""
    for part in caller(context).download(f"{LETTERS}/{_path(id)}/body"):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


@app.command()
@choosing
def replay(
    context: typer.Context,
    wanted: Wanted,
    ids: Ids = None,
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
    """Send letters back, governed: plan, canary, rate, automatic stop."""
    request = replaying.request(chosen(ids, wanted), rate, canary, stop, window, attempts, to, why)
    replaying.replay(context, request, dry_run=dry_run, yes=yes, wait=not no_wait, form=output)


@app.command()
@choosing
def discard(
    context: typer.Context,
    wanted: Wanted,
    ids: Ids = None,
    why: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Discard letters; `dlo letters restore` takes it back for a week."""
    move(context, "discard", chosen(ids, wanted), why, dry_run=dry_run, yes=yes)


@app.command()
@choosing
def restore(
    context: typer.Context,
    wanted: Wanted,
    ids: Ids = None,
    why: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Bring discarded letters back."""
    move(context, "restore", chosen(ids, wanted), why, dry_run=dry_run, yes=yes)


@app.command()
@choosing
def export(context: typer.Context, wanted: Wanted) -> None:
    """Write letters to stdout, one JSON a line, everything that an import needs."""
    for part in caller(context).download(f"{LETTERS}/export", wanted):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


@app.command("import")
def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="What `export` wrote; - is stdin.", allow_dash=True)],
) -> None:
    """Read letters that `export` wrote; those that are there already stay as they are."""
    with _opened(file) as source:
        done = caller(context).upload(f"{LETTERS}/import", iter(source))
    screen = screen_of(context)
    screen.json(done)
    if done.get("faults"):
        screen.say("some lines were not taken; `faults` says which and why")
        raise typer.Exit(Exit.PARTLY)


def move(
    context: typer.Context, verb: str, wanted: Wanted, why: str, *, dry_run: bool, yes: bool
) -> None:
    """Discard or restore: count, ask, do exactly that many."""
    screen, service = screen_of(context), caller(context)
    if not dry_run:
        must_be_asked(screen, yes=yes)
    request: dict[str, Any] = {"filter": wanted, "why": said(why)}
    many = service.post(f"{LETTERS}/{verb}", {**request, "dry_run": True})["letters"]
    if dry_run:
        screen.json({"letters": many})
        return
    if not many:
        screen.say(f"nothing to {verb}")
        screen.json({"letters": 0})
        return
    consent(screen, f"{verb.capitalize()} {letters(many)}?", yes=yes)
    done = service.post(f"{LETTERS}/{verb}", {**request, "expected": many})
    screen.say(f"{letters(done['letters'])}: {verb} done")
    screen.json({"letters": done["letters"]})


def letters(many: int) -> str:
    """`1 letter`, `12 letters`."""
    return "1 letter" if many == 1 else f"{many} letters"


def _path(id_: str) -> str:
    """An id as it stands in a URL; anything else is nobody's."""
    if not id_.isalnum() or not id_.isascii():
        raise Refusal(
            f"There is no letter {short(id_)!r}: ids are 32 digits and letters a–f.", Exit.NOT_FOUND
        )
    return id_


def _error(letter: Any) -> str:
    kind, error = letter["error_type"], letter["error"]
    return f"{kind}: {error}" if kind and error else kind or error or letter["reason"]


def _rows(letter: Any) -> Iterator[tuple[str, object]]:
    yield "id", letter["id"]
    yield "message id", letter["letter"]
    yield "state", letter["state"]
    yield "why", letter.get("why")
    yield "died in", letter["origin_queue"]
    yield "exchange, key", f"{letter['exchange'] or '(default)'} {letter['routing_key']}"
    yield "flow, dead queue", f"{letter['flow']} {letter['queue']}"
    yield "cause", letter["cause"]
    yield "error", _error(letter)
    yield "place", letter["place"]
    yield (
        "retries, burials, replays",
        f"{letter['retries']}, {letter['burials']}, {letter['replays']}",
    )
    yield "first failure", moment(letter["first_failure"])
    yield "buried", moment(letter["buried_at"])
    yield "body", f"{letter['size']} bytes {letter['content_type']}"
    for name, value in letter["headers"].items():
        yield f"  {name}", short(value, 120)


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """The file, before anything is sent."""
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        source = file.open("rb")
    except OSError as fault:
        raise Refusal(f"{file} cannot be read: {fault.strerror}.", Exit.USAGE) from None
    with source:
        yield source
