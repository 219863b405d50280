"""Words of strangers, made fit for a database: no NUL, no half characters, not too long, not too deep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

LONGEST_TEXT = 1024
DEEPEST, WIDEST = 4, 50
LARGEST_FACTS = 16 * 1024
NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""They are no JSON."""


def clean(text: str, longest: int = LONGEST_TEXT) -> str:
    """Text that PostgreSQL takes."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isascii():
        return text.replace("\x00", "\N{SYMBOL FOR NULL}") if "\x00" in text else text
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace("\x00", "\N{SYMBOL FOR NULL}")


def words(value: object, longest: int = LONGEST_TEXT) -> str:
    """Any header's value as text; nothing where there is none."""
    match value:
        case str():
            return clean(value, longest)
        case bytes() | bytearray():
            return clean(bytes(value[: longest * 4]).decode("utf-8", "replace"), longest)
        case None:
            return ""
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case bool() | int() | float() | Decimal():
            return str(value)
        case _:
            return clean(json.dumps(tidy(value), ensure_ascii=False), longest)


def tidy(value: object, depth: int = 0) -> object:
    """A header's value as JSON that every database takes."""
    match value:
        case str():
            return clean(value)
        case bool() | int() | None:
            return value
        case float():
            return value if value - value == 0 else NO_NUMBERS[str(value)]
        case dict() if depth < DEEPEST:
            pairs = list(value.items())[:WIDEST]
            return {clean(str(name), 255): tidy(inner, depth + 1) for name, inner in pairs}
        case list() | tuple() if depth < DEEPEST:
            return [tidy(inner, depth + 1) for inner in value[:WIDEST]]
        case dict() | list() | tuple():
            return "…"
        case _:
            return words(value)


def facts(headers: Mapping[str, object], properties: Mapping[str, object]) -> str:
    """Headers and properties as JSON text for searching, never larger than 16 KiB; the smallest
    headers first where they do not all fit."""
    kept = {clean(name, 255): tidy(value) for name, value in headers.items()}
    said = {name: tidy(value) for name, value in properties.items()}
    text = _json({"headers": kept, "properties": said})
    if len(text) <= LARGEST_FACTS // 4 or len(text.encode()) <= LARGEST_FACTS:
        return text
    return _json({"headers": _fitting(kept), "properties": said, "cut": True})


def _fitting(headers: Mapping[str, object]) -> dict[str, object]:
    sizes = {name: len(_json({name: value}).encode()) for name, value in headers.items()}
    room, kept = LARGEST_FACTS // 2, {}
    for name in sorted(sizes, key=sizes.__getitem__):
        room -= sizes[name]
        if room < 0:
            break
        kept[name] = headers[name]
    return kept


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
