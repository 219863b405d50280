"""The known name that a misspelt one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean rabbit?`, or nothing where no name is near."""
    near = get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
