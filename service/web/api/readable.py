"""Values of headers as JSON can say them."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

PREVIEW = 64 * 1024


def plain(value: object) -> Any:
    """Anything a header can hold; bytes that are no text as `{"base64": …}`."""
    match value:
        case bool() | None | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value.encode("utf-8", "replace").decode()
        case bytes() | bytearray():
            return {"base64": in_base64(bytes(value))}
        case datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case Mapping():
            return {str(plain(str(name))): plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            return plain(str(value))


def in_base64(data: bytes) -> str:
    """Bytes as JSON carries them."""
    return base64.b64encode(data).decode("ascii")


def text_of(body: bytes) -> str | None:
    """The beginning of a body, where it is text; None where it is not.

    A cut may fall into a character: up to three bytes at the end are forgiven.
    """
    start = body[:PREVIEW]
    for spare in range(4 if len(body) > PREVIEW else 1):
        try:
            return start[: len(start) - spare].decode()
        except UnicodeDecodeError:
            continue
    return None
