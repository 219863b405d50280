"""The plan of each list that people open: down an index, on both databases, at tens of thousands of rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, text, update

from benchmarks.seeding import seed
from service.core.states import OPEN, LetterState
from service.ledger import alarms, audit, causes, letters
from service.ledger.book import Book
from service.ledger.engine import is_sqlite
from service.ledger.figures import figures, pulse
from service.ledger.filters import Filter
from service.ledger.schema import upgrade
from service.ledger.tables import AUDIT, CAUSES

ROWS = 20_000
CAUSE = f"{3:016x}"
NOW = datetime.now(UTC)
NUMBER = 15_000


@dataclass
class Planner:
    """A ledger, and what was asked of it."""

    book: Book
    sqlite: bool
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        engine = self.book._engine.sync_engine
        event.listen(engine, "before_cursor_execute", self._note)

    def _note(
        self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any
    ) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            self.asked.append((statement, parameters))

    async def plans(self) -> list[str]:
        """How each statement since the last time was carried out."""
        asked, self.asked = self.asked, []
        explain = "EXPLAIN QUERY PLAN" if self.sqlite else "EXPLAIN"
        found = []
        async with self.book.reading() as connection:
            for statement, parameters in asked:
                rows = await connection.exec_driver_sql(f"{explain} {statement}", parameters)
                found.append("\n".join(str(row[-1]) for row in rows))
        self.asked.clear()
        return found


@pytest.fixture
async def planner(database_url: str) -> AsyncIterator[Planner]:
    await upgrade(database_url)
    book, sqlite = Book(database_url), is_sqlite(database_url)
    await seed(book, ROWS, sqlite)
    deeds = [
        {"at": NOW, "who": "anna", "action": "cause.mute", "subject": f"cause:{n % 500}"}
        | {"how_many": 1, "why": "", "details": {}}
        for n in range(5_000)
    ]
    async with book.writing() as connection:
        await connection.execute(AUDIT.insert(), deeds)
        await connection.execute(text("ANALYZE"))
    yield Planner(book, sqlite)
    await book.close()


OF_LETTERS: list[tuple[Filter, str]] = [
    (Filter(), "pk_letters"),
    (Filter(states=OPEN), "ix_letters_state"),
    (Filter(states=(LetterState.DISCARDED,)), "ix_letters_state"),
    (Filter(cause=CAUSE), "ix_letters_cause"),
    (Filter(cause=CAUSE, states=OPEN), "ix_letters_cause"),
    (Filter(origin_queue="orders.7"), "ix_letters_origin_queue"),
    (Filter(routing_key="order.kind7"), "ix_letters_routing_key"),
    (Filter(flow="settlement"), "ix_letters_flow"),
    (Filter(letter="letter-7"), "ix_letters_letter"),
    (Filter(ids=(f"{7:032x}", f"{8:032x}")), "uq_letters_id"),
]


async def test_every_list_of_letters_walks_its_index(planner: Planner) -> None:
    for wanted, index in OF_LETTERS:
        for before in (None, NUMBER):
            await letters.page(planner.book, wanted, before, 50)
            (plan,) = await planner.plans()
            used(planner, plan, index, wanted)


async def test_a_page_of_a_filter_no_index_knows_finds_its_bound_in_an_index(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ledger.walks.WINDOW", 1_000)
    for wanted, index in (
        (Filter(text="nobody wrote this"), "pk_letters"),
        (Filter(states=OPEN, text="nobody wrote this"), "ix_letters_state"),
        (Filter(origin_queue="orders.7", states=OPEN), "ix_letters_origin_queue"),
    ):
        await letters.page(planner.book, wanted, NUMBER, 50)
        bound, *_ = await planner.plans()
        used(planner, bound, index, wanted)


async def test_causes_audit_and_status_read_indexes_and_counts(planner: Planner) -> None:
    for by in ("changed_at", "last_seen"):
        await causes.page(planner.book, causes.Wanted(by=by), None, 50, NOW)
        page, *_ = await planner.plans()
        assert f"ix_causes_{by}" in page or "on causes" in page  # a hundred rows may be read whole
    await causes.find(planner.book, CAUSE, NOW)
    *_, breakdown = await planner.plans()
    used(planner, breakdown, "ix_letters_cause", "breakdown")
    await audit.page(planner.book, audit.Asked(subject="cause:7"), 4_000, 50)
    await audit.page(planner.book, audit.Asked(), 4_000, 50)
    narrow, whole = await planner.plans()
    assert "ix_audit_subject" in narrow
    assert "pk_audit" in whole or "PRIMARY KEY" in whole
    await figures(planner.book, NOW)
    await pulse(planner.book)
    for plan in await planner.plans():
        never_whole(planner, plan, "figures")


async def test_the_watch_reads_only_what_is_due_of_many_causes(planner: Planner) -> None:
    plain = {"version": 1, "title": "t", "error_type": "", "place": "", "state": "new"}
    plain |= dict.fromkeys(("first_seen", "last_seen", "changed_at"), NOW - timedelta(days=2))
    told = [
        plain | {"id": f"told-{n}", "alerted_at": NOW - timedelta(days=1, seconds=n)}
        for n in range(5_000)
    ]
    async with planner.book.writing() as connection:
        await connection.execute(update(CAUSES).values(alerted_at=NOW))
        await connection.execute(CAUSES.insert(), told)
        await connection.execute(text("ANALYZE causes"))
    await alarms.end_mutes(planner.book, NOW)
    await alarms.due(planner.book, NOW)
    await alarms.told_since(planner.book, NOW - timedelta(hours=1))
    indexes = ("ix_causes_muted_until", "ix_causes_untold", "ix_causes_alerted_at")
    for plan, index in zip(await planner.plans(), indexes, strict=True):
        assert index in plan, plan


def used(planner: Planner, plan: str, index: str, wanted: object) -> None:
    """It walks this index, and reads the letters no other way."""
    names = {"pk_letters": "PRIMARY KEY", "uq_letters_id": "sqlite_autoindex_letters_"}
    expected = names.get(index, index) if planner.sqlite else index
    assert expected in plan or _newest_first(planner, plan, index), f"{wanted}:\n{plan}"
    never_whole(planner, plan, wanted)


def _newest_first(planner: Planner, plan: str, index: str) -> bool:
    """SQLite's rows lie in the order of their numbers: from the end, that is no index's work."""
    return planner.sqlite and index == "pk_letters" and "SCAN letters" in plan


def never_whole(planner: Planner, plan: str, wanted: object) -> None:
    """No plan reads all letters."""
    assert "Seq Scan on letters" not in plan, f"{wanted}:\n{plan}"
    sorted_whole = (
        "SCAN letters" in plan and "USE TEMP B-TREE FOR ORDER BY" in plan.split("SCAN letters")[0]
    )
    assert not (planner.sqlite and sorted_whole), f"{wanted}:\n{plan}"
