"""Durations as people write them: `250ms`, `30s`, `5m`, `1h30m`."""

import re
from datetime import timedelta
from functools import lru_cache

UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
PART = re.compile(r"(\d{1,9})(ms|[smhd])")


def parse(text: str) -> timedelta:
    """`"1h30m"` → a timedelta; anything else is a ValueError that says what was expected."""
    compact = text.strip().lower().replace(" ", "")
    parts = PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(
            f"{text!r} is not a duration: write a number and a unit, like 250ms, 30s or 5m"
        )
    return timedelta(milliseconds=sum(int(number) * UNITS[unit] for number, unit in parts))


@lru_cache(maxsize=256)
def say(duration: timedelta) -> str:
    """A timedelta → the shortest way to write it."""
    left = milliseconds(duration)
    if left == 0:
        return "0s"
    said = ""
    for unit, size in UNITS.items():
        count, left = divmod(left, size)
        said += f"{count}{unit}" if count else ""
    return said


def milliseconds(duration: timedelta) -> int:
    """The unit of `x-message-ttl`."""
    return duration // timedelta(milliseconds=1)
