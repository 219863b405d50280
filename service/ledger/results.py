"""What became of letters that were sent back: they died again, or a handler took them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.replayed import Replayed
from service.core.states import ItemState, LetterState
from service.ledger.again import again
from service.ledger.audit import clean
from service.ledger.book import Book
from service.ledger.burial import Sent
from service.ledger.tables import LETTERS, REPLAY_ITEMS

# Out of these a letter may come back. `claimed`: consumers are quicker than our own note that it was
# sent. `stopped`: it was in doubt when the job was stopped.
MAY_COME_BACK = ("claimed", "sent", "handled", "quiet", "stopped")
MAY_BE_HANDLED = ("claimed", "sent", "quiet", "stopped")


@dataclass(frozen=True, slots=True)
class Back:
    """A letter of the ledger that was buried again."""

    letter: int
    """Its row's number."""
    replay: str | None
    """The job that its row names."""
    sent: Sent | None = None
    """The job that its mark names, if our key vouches for it."""
    says: str = ""


async def note_back(connection: AsyncConnection, backs: Sequence[Back], now: datetime) -> int:
    """Give the letters' items their result, inside the transaction that files the burials; how many.

    It makes no difference whether the job has noted before that it sent them.
    """
    marked = [back for back in backs if back.sent is not None]
    plain = [back for back in backs if back.sent is None and back.replay]
    if not marked and not plain:
        return 0
    own, noted = REPLAY_ITEMS.c, 0
    by_mark = [(back.sent.replay, back.sent.position) for back in marked if back.sent]
    by_row = [(back.replay, back.letter) for back in plain]
    for key, found, values in (
        (tuple_(own.replay, own.position), marked, by_mark),
        (tuple_(own.replay, own.letter), plain, by_row),
    ):
        if found:
            numbers = [back.letter for back in found]
            step = (
                update(REPLAY_ITEMS)
                .where(key.in_(values), own.letter.in_(numbers), own.state.in_(MAY_COME_BACK))
                .values(
                    state=ItemState.BACK.value,
                    sent_at=func.coalesce(own.sent_at, now),
                    ended_at=now,
                    says=_reasons(found),
                )
            )
            noted += (await connection.execute(step)).rowcount
    return noted


async def note_handled(book: Book, receipts: Sequence[Replayed], now: datetime) -> int:
    """Handlers under our middleware took these; how many of them nobody knew of yet.

    One that came back meanwhile stays back: a copy of it lies with people.
    """
    own = REPLAY_ITEMS.c
    keys = sorted({(receipt.job, receipt.position) for receipt in receipts})
    theirs = tuple_(own.replay, own.position).in_(keys)
    mine = select(own.letter).where(theirs, own.state.in_(MAY_BE_HANDLED))
    jobs = {job for job, _ in keys}
    open_ = (LetterState.SENT.value, LetterState.QUIET.value)
    letters = update(LETTERS).where(
        LETTERS.c.number.in_(mine), LETTERS.c.state.in_(open_), LETTERS.c.replay.in_(jobs)
    )
    items = update(REPLAY_ITEMS).where(theirs, own.state.in_(MAY_BE_HANDLED))

    async def verb() -> int:
        async with book.writing() as connection:
            handled = LetterState.HANDLED.value
            await connection.execute(letters.values(state=handled, changed_at=now))
            seen = func.coalesce(own.sent_at, now)
            noted = items.values(state=ItemState.HANDLED.value, sent_at=seen, ended_at=now)
            return (await connection.execute(noted)).rowcount

    return await again(verb)


def _reasons(backs: Sequence[Back]) -> object:
    """The newest reason of each, by its row."""
    reasons = {back.letter: clean(back.says) for back in backs}
    return case(reasons, value=REPLAY_ITEMS.c.letter, else_="")
