"""Nothing irreversible without a yes: from the terminal, or from the command itself."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from service.cli.calling import Exit
from service.cli.screen import Screen

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Why = Annotated[str, typer.Option("--why", help="Why, for the audit.", metavar="TEXT")]


def must_be_asked(screen: Screen, *, yes: bool) -> None:
    """Without a terminal nobody can be asked: then the command itself must say yes, or nothing is done."""
    if yes or (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    screen.say("Nobody can be asked here, so nothing was done. To do it without asking, type:")
    screen.say(f"  {shlex.join(['dlo', *sys.argv[1:], '--yes'])}")
    raise typer.Exit(Exit.USAGE)


def consent(screen: Screen, question: str, *, yes: bool) -> None:
    """Go on only with a yes."""
    must_be_asked(screen, yes=yes)
    if not yes and not typer.confirm(question, default=False, err=True):
        screen.say("nothing was done")
        raise typer.Exit(Exit.FAILED)


def said(why: str) -> str:
    """The audit wants a reason; a command without one says so."""
    return why or "(no reason given)"
