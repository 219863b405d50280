"""Filing: many burials in one transaction. A letter has one row, however often it comes.

`file` is the only verb. What it promises: the same burial again changes nothing, an older burial
never overwrites a newer one, and counts of letters, causes and hours are those of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import OPEN, LetterState
from service.ledger import recurrence
from service.ledger.again import again
from service.ledger.away import InDoubt, LedgerAway
from service.ledger.book import Book
from service.ledger.burial import Burial, Sent
from service.ledger.counting import count_causes
from service.ledger.inserting import insert_new
from service.ledger.recurrence import Known
from service.ledger.results import Back, note_back
from service.ledger.tables import LETTERS, REPLAY_ITEMS

ON_THEIR_WAY = (LetterState.SENT, LetterState.HANDLED, LetterState.QUIET)
REPLAYED = (*ON_THEIR_WAY, LetterState.BACK)


@dataclass(frozen=True, slots=True)
class Filed:
    """What became of the burials."""

    new: int = 0
    """Letters seen for the first time."""
    again: int = 0
    """Letters that were buried once more."""
    copies: int = 0
    """Burials that were known already."""
    back: int = 0
    """Of those buried once more, the ones that a replay had sent."""

    def __add__(self, other: Filed) -> Filed:
        new, again, copies = (
            self.new + other.new,
            self.again + other.again,
            self.copies + other.copies,
        )
        return Filed(new, again, copies, self.back + other.back)


async def file(book: Book, burials: Sequence[Burial], now: datetime) -> Filed:
    """Write them all, or none: LedgerAway; InDoubt where nobody knows which. Deliveries may be
    acknowledged after this, not before."""

    async def once() -> Filed:
        filed: Filed | None = None
        try:
            async with book.writing() as connection:
                filed = await _file(connection, burials, now)
        except LedgerAway as away:
            if filed is not None:
                raise InDoubt(str(away)) from away
            raise
        return filed

    return await again(once)


async def _file(connection: AsyncConnection, burials: Sequence[Burial], now: datetime) -> Filed:
    counted: list[Burial] = []
    backs: list[Back] = []
    filed, left = Filed(), await _recognised(connection, burials)
    while left:
        first, later = _first_of_each(left)
        mine = await insert_new(connection, first, now)
        new = [burial for burial in first if burial.id in mine]
        left = [burial for burial in first if burial.id not in mine] + later
        known = await recurrence.known(connection, {burial.id for burial in left})
        here = [burial for burial in left if burial.id in known]
        again = await _merge(connection, here, known, backs, now)
        counted += new + again
        filed += Filed(len(new), len(again), len(here) - len(again))
        # Rows that were there a moment ago and are forgotten now: those letters are new.
        left = [burial for burial in left if burial.id not in known]
    await count_causes(connection, counted, now)
    return filed + Filed(back=await note_back(connection, backs, now))


async def _recognised(connection: AsyncConnection, burials: Sequence[Burial]) -> Sequence[Burial]:
    """A letter that a replay sent is the letter of that replay, wherever it died this time; as long as
    it has its row: the mark says which letter it was."""
    sent = {(b.sent.replay, b.sent.position, b.sent.letter) for b in burials if b.sent is not None}
    if not sent:
        return burials
    items = REPLAY_ITEMS.join(LETTERS, LETTERS.c.number == REPLAY_ITEMS.c.letter)
    marked = (REPLAY_ITEMS.c.replay, REPLAY_ITEMS.c.position, LETTERS.c.id)
    wanted = select(*marked).select_from(items).where(tuple_(*marked).in_(sent))
    known = {Sent(*row) for row in await connection.execute(wanted)}
    return [b._replace(id=b.sent.letter) if b.sent in known else b for b in burials]


def _first_of_each(burials: Iterable[Burial]) -> tuple[list[Burial], list[Burial]]:
    """The first burial of each letter, and the further burials."""
    first: dict[str, Burial] = {}
    later: list[Burial] = []
    for burial in burials:
        if burial.id in first:
            later.append(burial)
        else:
            first[burial.id] = burial
    return list(first.values()), later


async def _merge(
    connection: AsyncConnection,
    burials: Iterable[Burial],
    known: dict[str, Known],
    backs: list[Back],
    now: datetime,
) -> list[Burial]:
    """Bury letters again that have a row; the burials that counted."""
    counted = []
    for burial in burials:
        row = known[burial.id]
        if _is_copy(burial, row):
            continue
        state = _state(burial, row)
        if burial.sent is not None or row.state in ON_THEIR_WAY:
            backs.append(Back(row.number, row.replay, burial.sent, burial.reason))
        known[burial.id] = await recurrence.bury_again(connection, row, burial, state, now)
        counted.append(burial)
    return counted


def _is_copy(burial: Burial, row: Known) -> bool:
    """Known bytes are the burial we have, unless the letter left since and the broker says that
    these were never given out before: then somebody put them there again."""
    if burial.digest not in row.digests:
        return False
    return row.state in OPEN or burial.redelivered


def _state(burial: Burial, row: Known) -> LetterState:
    if burial.discarded:
        return LetterState.DISCARDED
    if burial.sent is not None or row.state in REPLAYED:
        return LetterState.BACK
    return LetterState.PARKED
