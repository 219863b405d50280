"""Cursors: where the next page begins, for nobody to read but us."""

from __future__ import annotations

import base64
import binascii
import json

from service.web.problems import Problem

VERSION = 1
LARGEST = 2**63 - 1


def cursor(kind: str, *keys: int | str) -> str:
    """The place after these keys, in a list of this kind."""
    text = json.dumps([VERSION, kind, *keys], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def keys_of(text: str, kind: str, *kinds: type[int] | type[str]) -> tuple[int | str, ...]:
    """The keys of a cursor of ours; anything else is a problem."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        read = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise broken() from None
    if not isinstance(read, list) or read[:2] != [VERSION, kind] or len(read) != 2 + len(kinds):
        raise broken()
    if not all(_is(value, wanted) for value, wanted in zip(read[2:], kinds, strict=True)):
        raise broken()
    return tuple(read[2:])


def number_of(text: str | None, kind: str) -> int | None:
    """The number that the page lies below; None for the first page."""
    if text is None:
        return None
    (number,) = keys_of(text, kind, int)
    assert isinstance(number, int)
    return number


def _is(value: object, wanted: type[int] | type[str]) -> bool:
    if wanted is int:
        return type(value) is int and 0 <= value <= LARGEST
    return isinstance(value, str) and len(value) <= 100 and value.isascii() and "\x00" not in value


def broken() -> Problem:
    """A cursor that is none of ours."""
    return Problem(
        422,
        "The cursor cannot be used",
        "It is not one that this list has given.",
        hint="Send `next` of the page before as it is, or no cursor for the first page.",
    )
