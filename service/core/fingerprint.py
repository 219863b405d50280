"""A failure → its cause, so that 10 000 letters read as 3 problems."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from service.core.cleaning import clean
from service.core.frames import without_line

VERSION = 1
"""Of the rules below. Another rule is another version, and so another cause: never a silent regrouping."""
LONGEST_TITLE = 200
LONGEST_MESSAGE = 1024

# What differs between two letters that failed alike; at one place the first that fits counts.
KINDS = {
    "id": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "date": r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?",
    "text": r"\"[^\"]*\"|'[^']*'|`[^`]*`|«[^»]*»|“[^”]*”",
    "hex": r"\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{6,}\b",
    "n": r"\d+(?:[.,]\d+)*",
}
VARIABLE = re.compile(
    "(?=[0-9a-fA-F\"'`«“])(?:"
    + "|".join(f"(?P<{name}>{kind})" for name, kind in KINDS.items())
    + ")"
)


class Failure(NamedTuple):
    """What is known of why a letter is dead; whatever is not known is empty."""

    given: str = ""
    """The fingerprint that the letter itself carries (`x-dlo-fingerprint`)."""
    error_type: str = ""
    error: str = ""
    place: str = ""
    """The innermost frame of the application."""
    reason: str = ""
    """How the broker says it died: rejected, expired …"""
    queue: str = ""
    """Where."""


class Cause(NamedTuple):
    """What letters that failed alike have in common."""

    id: str
    title: str
    error_type: str
    place: str
    version: int = VERSION


def cause_of(failure: Failure) -> Cause:
    """The letter's own fingerprint; else the error's type and place; else its type and its message
    without what varies; else how and where it died."""
    if failure.given:
        return _cause(("given", failure.given), failure.given, failure.error_type, failure.place)
    kind, place = failure.error_type, failure.place
    if kind and place:
        return _cause(("place", kind, without_line(place)), f"{kind} in {place}", kind, place)
    if kind or failure.error:
        said = without_variables(failure.error)
        title = f"{kind}: {said}" if kind and said else kind or said
        return _cause(("message", kind, said), title, kind, place)
    how, where = failure.reason or "unknown", failure.queue or "an unknown queue"
    return _cause(("death", how, where), f"{how} in {where}", "", "")


@lru_cache(maxsize=1024)
def without_variables(message: str) -> str:
    """A message with numbers, ids, hex, quotes and dates replaced: what two failures share."""
    plain = " ".join(message[:LONGEST_MESSAGE].split())
    return VARIABLE.sub(lambda found: f"<{found.lastgroup}>", plain)


@lru_cache(maxsize=1024)
def _cause(said: tuple[str, ...], title: str, error_type: str, place: str) -> Cause:
    text = "".join([f"{len(part)}:{part}" for part in (str(VERSION), *said)])
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Cause(digest[:16], clean(title, LONGEST_TITLE), error_type, place)
