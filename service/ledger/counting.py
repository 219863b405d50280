"""Causes are made, counted by hour, and found regressed, by the burials that are filed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import case
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.states import CauseState
from service.ledger.burial import Burial
from service.ledger.tables import CAUSE_HOURS, CAUSES


async def count_causes(
    connection: AsyncConnection, burials: Iterable[Burial], now: datetime
) -> None:
    """Count burials that are new; last in the transaction, for others wait for these few rows."""
    burials = list(burials)
    counts = Counter(burial.cause.id for burial in burials)
    if not counts:
        return
    causes = {burial.cause.id: burial.cause for burial in burials}
    rows = [
        {
            "id": cause.id,
            "version": cause.version,
            "title": cause.title,
            "error_type": cause.error_type,
            "place": cause.place,
            "state": CauseState.NEW.value,
            "first_seen": now,
            "last_seen": now,
            "changed_at": now,
            "burials": counts[cause.id],
        }
        for _, cause in sorted(causes.items())  # in one order: nobody waits in a circle
    ]
    hour = now.replace(minute=0, second=0, microsecond=0)
    hours = [{"cause": id_, "hour": hour, "burials": counts[id_]} for id_ in sorted(counts)]
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    await connection.execute(_counted(insert(CAUSES)), rows)
    await connection.execute(_by_hour(insert(CAUSE_HOURS)), hours)


def _counted(rows: sqlite.Insert | postgresql.Insert) -> sqlite.Insert | postgresql.Insert:
    """A cause that was resolved and comes again is regressed; any other keeps its state."""
    resolved = CAUSES.c.state == CauseState.RESOLVED.value
    return rows.on_conflict_do_update(
        index_elements=[CAUSES.c.id],
        set_={
            "burials": CAUSES.c.burials + rows.excluded.burials,
            "last_seen": rows.excluded.last_seen,
            "state": case((resolved, CauseState.REGRESSED.value), else_=CAUSES.c.state),
            "changed_at": case((resolved, rows.excluded.changed_at), else_=CAUSES.c.changed_at),
        },
    )


def _by_hour(rows: sqlite.Insert | postgresql.Insert) -> sqlite.Insert | postgresql.Insert:
    return rows.on_conflict_do_update(
        index_elements=[CAUSE_HOURS.c.cause, CAUSE_HOURS.c.hour],
        set_={"burials": CAUSE_HOURS.c.burials + rows.excluded.burials},
    )
