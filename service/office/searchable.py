"""What a letter tells of itself, as JSON for searching: nearly every letter's in one stroke."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import PydanticSerializationError, to_json

from service.core.cleaning import LARGEST_FACTS, facts

SMALL = LARGEST_FACTS // 4


def searchable(headers: Mapping[str, object], properties: Mapping[str, object]) -> str:
    """The same as `facts`, three times as fast where there is nothing to tidy: a small letter, and no
    character in it that some database does not take."""
    try:
        plain = to_json({"headers": headers, "properties": properties}, inf_nan_mode="strings")
    except PydanticSerializationError:  # bytes that are no text
        return facts(headers, properties)
    return (
        plain.decode()
        if len(plain) <= SMALL and b"\\u" not in plain
        else facts(headers, properties)
    )
