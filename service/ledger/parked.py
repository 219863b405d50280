"""How many letters need somebody, and since when the oldest does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import func, select

from service.core.states import OPEN
from service.ledger.book import Book
from service.ledger.tables import LETTER_COUNTS, LETTERS

STATES = [state.value for state in OPEN]


@dataclass(frozen=True, slots=True)
class Parked:
    """Parked letters and those that came back, by flow; when the oldest of them was buried."""

    by_flow: Mapping[str, int] = field(default_factory=dict)
    oldest: datetime | None = None


async def parked(book: Book) -> Parked:
    """Out of the counts that triggers keep; the oldest by an index."""
    counts = (
        select(LETTER_COUNTS.c.flow, func.sum(LETTER_COUNTS.c.letters).label("letters"))
        .where(LETTER_COUNTS.c.state.in_(STATES))
        .group_by(LETTER_COUNTS.c.flow)
    )
    async with book.reading() as connection:
        by_flow = {row.flow: int(row.letters) for row in await connection.execute(counts)}
        found = []
        for state in STATES:
            first = select(LETTERS.c.buried_at).where(LETTERS.c.state == state)
            found.append(await connection.scalar(first.order_by(LETTERS.c.number).limit(1)))
    moments = [moment.replace(tzinfo=moment.tzinfo or UTC) for moment in found if moment]
    return Parked(by_flow, min(moments, default=None))
