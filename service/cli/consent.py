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


def consent(screen: Screen, question: str, *, yes: bool) -> None:
    """Go on only with a yes; without a terminal nobody can be asked."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        screen.say(f"{question} Nobody can be asked here, and nothing was done. To do it, type:")
        screen.say(f"  {shlex.join(['dlo', *sys.argv[1:], '--yes'])}")
        raise typer.Exit(Exit.USAGE)
    if not typer.confirm(question, default=False, err=True):
        screen.say("nothing was done")
        raise typer.Exit(Exit.FAILED)
