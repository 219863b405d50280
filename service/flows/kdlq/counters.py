"""KDLQ's counters as they travel: numbers, decimal text, or the Java library's big-endian bytes."""

from __future__ import annotations

from collections.abc import Mapping

from service.core import marks as names
from service.core.policy import SPENT

WIDTHS = (4, 8)
LARGEST = 2**63 - 1
# Any four letters are four bytes too, and as a number far beyond this: no count.
LARGEST_BINARY = 2**24 - 1
ORIGINALS = {
    names.ORIG_OFFSET: "offset",
    names.ORIG_PARTITION: "partition",
    names.ORIG_TS: "timestamp",
}
"""The informational headers, and where an envelope's place has their values."""


def count_in(headers: Mapping[str, object], name: str) -> int:
    """A counter of the letter: 0 where there is none, spent where it cannot be read."""
    if name not in headers:
        return 0
    value = headers[name]
    count, most = number(value), SPENT - 1 if _is_written_out(value) else LARGEST_BINARY
    return count if count is not None and 0 <= count <= most else SPENT


def number(value: object) -> int | None:
    """A number in any of the ways it is written; None for anything else.

    Four digits are also four bytes: digits win.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    data = _bytes(value)
    if data.isdigit():
        return int(data) if len(data) < 20 else None
    return int.from_bytes(data, "big", signed=True) if len(data) in WIDTHS else None


def _is_written_out(value: object) -> bool:
    return isinstance(value, int) or _bytes(value).isdigit()


def _bytes(value: object) -> bytes:
    """Binary headers arrive as text where they happen to be UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return bytes(value) if isinstance(value, bytes | bytearray) else b""


def originals(headers: Mapping[str, object], place: Mapping[str, int]) -> dict[str, int]:
    """Where the letter was at first: what the first hop wrote, else where it is now."""
    found: dict[str, int] = {}
    for name, part in ORIGINALS.items():
        known = number(headers.get(name))
        if known is None or not 0 <= known <= LARGEST:
            known = place.get(part)
        if known is not None:
            found[name] = known
    return found


def text_in(headers: Mapping[str, object], name: str) -> str:
    """A header that is a text; empty for anything else."""
    value = headers.get(name)
    return value if isinstance(value, str) else ""
