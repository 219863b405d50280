"""Headers with some of them changed by an operator; every other byte stays as it came."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from service.edge.fields import Unreadable, encode_marks, without


def rewrite(table: bytes, changes: Mapping[str, str | int | None]) -> bytes:
    """The table with these fields replaced, dropped (None) or added; one that cannot be walked stays."""
    named = {name.encode("utf-8", "replace") for name in changes}
    try:
        kept = without(table, lambda name: name in named)
    except (Unreadable, IndexError, struct.error):
        return table
    new = {name: value for name, value in changes.items() if value is not None}
    return kept + encode_marks(new)
