"""Moments as every database gives them back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload


@overload
def utc(moment: datetime) -> datetime: ...
@overload
def utc(moment: None) -> None: ...


def utc(moment: datetime | None) -> datetime | None:
    """SQLite forgets the zone; everything is written in UTC."""
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
