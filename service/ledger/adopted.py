"""The queues of others that operators have adopted. Verbs, one transaction each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select

from service.ledger import audit
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.tables import ADOPTED


@dataclass(frozen=True, slots=True)
class AdoptedQueue:
    """Whose it is now, and since when."""

    queue: str
    who: str
    adopted_at: datetime


async def adopt(book: Book, queue: str, who: str, now: datetime, why: str = "") -> bool:
    """Take a queue's letters in from now on; False where that was so already."""
    row = book.insert(ADOPTED).values(queue=queue, who=audit.clean(who), adopted_at=now)
    async with book.writing() as connection:
        done = await connection.execute(row.on_conflict_do_nothing().returning(ADOPTED.c.queue))
        if done.scalar() is None:
            return False
        await audit.write(connection, Deed(who, "queue.adopt", f"queue:{queue}", why=why), now)
    return True


async def leave(book: Book, queue: str, who: str, now: datetime, why: str = "") -> bool:
    """Take no more letters from a queue; False where none were taken. Those filed stay."""
    async with book.writing() as connection:
        done = await connection.execute(delete(ADOPTED).where(ADOPTED.c.queue == queue))
        if not done.rowcount:
            return False
        await audit.write(connection, Deed(who, "queue.leave", f"queue:{queue}", why=why), now)
    return True


async def adopted(book: Book) -> tuple[AdoptedQueue, ...]:
    """Every adopted queue, by name."""
    async with book.reading() as connection:
        rows = await connection.execute(select(ADOPTED).order_by(ADOPTED.c.queue))
        return tuple(AdoptedQueue(row.queue, row.who, row.adopted_at) for row in rows)
