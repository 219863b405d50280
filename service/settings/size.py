"""Sizes as people write them: `512B`, `64KiB`, `4MiB`."""

import re

UNITS = {"MiB": 1024 * 1024, "KiB": 1024, "B": 1}
SIZE = re.compile(r"(\d{1,12}) ?(B|KiB|MiB)")


def parse(text: str) -> int:
    """`"4MiB"` → bytes; anything else is a ValueError that says what was expected."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError("a size like 512B, 64KiB or 4MiB")
    return int(found[1]) * UNITS[found[2]]


def say(size: int) -> str:
    """Bytes → the shortest exact way to write them."""
    unit = next(unit for unit, bytes_ in UNITS.items() if size % bytes_ == 0)
    return f"{size // UNITS[unit]}{unit}"
