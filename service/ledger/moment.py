"""A moment in UTC, the same from every database: SQLite forgets the zone it was written with."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect
from sqlalchemy.types import TypeDecorator


def in_utc(moment: datetime) -> datetime:
    """A moment without a zone is in UTC already."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


class Moment(TypeDecorator[datetime]):
    """Written in UTC, read as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Written in UTC; a moment without a zone is one already."""
        return None if value is None else in_utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Read as UTC."""
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)
