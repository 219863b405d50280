"""Options that may stand anywhere: `dlo causes list --url …` is `dlo --url … causes list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WITH_VALUE, PLAIN = ("--url", "--token"), ("--no-color",)


def hoisted(words: Sequence[str]) -> list[str]:
    """The words with the options of the root command first; what follows a bare `--` stays."""
    front: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word in PLAIN or word.startswith(tuple(f"{name}=" for name in WITH_VALUE)):
            front.append(word)
        elif word in WITH_VALUE:
            front += [word, *_next(left)]
        else:
            rest.append(word)
    return front + rest


def _next(left: Iterator[str]) -> list[str]:
    value = next(left, None)
    return [] if value is None else [value]
