"""Causes that people must be told of, each once: new ones and those that came again. Verbs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select, update

from service.core.alerting import Alarm
from service.core.states import OPEN, CauseState
from service.ledger.book import Book
from service.ledger.tables import CAUSES, LETTER_COUNTS

LOUD = (CauseState.NEW.value, CauseState.REGRESSED.value)
MOST = 1_000


async def due(book: Book, now: datetime) -> tuple[Alarm, ...]:
    """The causes nobody was told of since they came or came again, oldest first."""
    open_letters = (
        select(func.coalesce(func.sum(LETTER_COUNTS.c.letters), 0))
        .where(LETTER_COUNTS.c.cause == CAUSES.c.id)
        .where(LETTER_COUNTS.c.state.in_([state.value for state in OPEN]))
        .scalar_subquery()
    )
    asked = (
        select(CAUSES.c.id, CAUSES.c.state, CAUSES.c.changed_at, open_letters.label("letters"))
        .where(_is_due(now))
        .order_by(CAUSES.c.changed_at, CAUSES.c.id)
        .limit(MOST)
    )
    async with book.reading() as connection:
        rows = (await connection.execute(asked)).all()
    return tuple(
        Alarm(row.id, CauseState(row.state), int(row.letters), row.changed_at) for row in rows
    )


async def told_since(book: Book, since: datetime) -> tuple[datetime, ...]:
    """When messages went out; a digest is one moment, however many causes it named."""
    asked = select(CAUSES.c.alerted_at).where(CAUSES.c.alerted_at > since).distinct()
    async with book.reading() as connection:
        return tuple((await connection.execute(asked)).scalars())


async def claim(book: Book, causes: Iterable[str], now: datetime, until: datetime) -> set[str]:
    """Take the telling of these upon us; what another process is telling of is not ours.

    A claim ends by itself: what a process that died had taken is told by the next.
    """
    step = (
        update(CAUSES)
        .where(CAUSES.c.id.in_(list(causes)), _is_due(now))
        .values(alert_until=until)
        .returning(CAUSES.c.id)
    )
    async with book.writing() as connection:
        return set((await connection.execute(step)).scalars())


async def mark_told(book: Book, causes: Iterable[str], at: datetime) -> None:
    """People know; a cause that comes again after this moment is told again."""
    step = update(CAUSES).where(CAUSES.c.id.in_(list(causes)))
    async with book.writing() as connection:
        await connection.execute(step.values(alerted_at=at, alert_until=None))


async def release(book: Book, causes: Iterable[str]) -> None:
    """They could not be told: whoever is first may try again."""
    step = update(CAUSES).where(CAUSES.c.id.in_(list(causes)))
    async with book.writing() as connection:
        await connection.execute(step.values(alert_until=None))


async def end_mutes(book: Book, now: datetime) -> int:
    """Causes whose mute has run out are acknowledged ones again: known, and no longer silenced."""
    over = (CAUSES.c.state == CauseState.MUTED.value) & (CAUSES.c.muted_until <= now)
    async with book.reading() as connection:
        if not await connection.scalar(select(func.count()).select_from(CAUSES).where(over)):
            return 0  # asking takes no lock
    step = update(CAUSES).where(over)
    step = step.values(state=CauseState.ACKNOWLEDGED.value, muted_until=None, changed_at=now)
    async with book.writing() as connection:
        return (await connection.execute(step)).rowcount


def _is_due(now: datetime) -> ColumnElement[bool]:
    untold = or_(CAUSES.c.alerted_at.is_(None), CAUSES.c.alerted_at < CAUSES.c.changed_at)
    free = or_(CAUSES.c.alert_until.is_(None), CAUSES.c.alert_until < now)
    return CAUSES.c.state.in_(LOUD) & untold & free
