"""What the person at the terminal is told."""

from __future__ import annotations

from contextlib import suppress


def say(line: str) -> None:
    """One line, at once."""
    with suppress(BrokenPipeError):  # nobody reads any more: no reason to stop halfway
        print(line, flush=True)
