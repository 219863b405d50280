"""Routes by plain SQL into a running service, on SQLite and on PostgreSQL."""

import asyncio
from datetime import timedelta

import pytest

from deploy.local.postgres import Server
from service.core.route import ReturnTo, Route
from service.ledger import changes
from service.ledger.away import LedgerAway
from service.ledger.engine import sqlite_file
from service.ledger.routes import Away, Routes, Up
from service.ledger.schema import upgrade
from tests.ledger.conftest import POLL, TIERS, Log, run_sql, watched
from tests.servers.proxy import proxied
from tests.servers.waiting import eventually

S = timedelta(seconds=1)


async def test_a_route_is_inserted_changed_and_deleted_while_the_service_runs(
    database_url: str,
) -> None:
    await upgrade(database_url)
    async with watched(database_url, Log()) as routes:
        await asyncio.wait_for(routes.loaded.wait(), 5)
        assert routes.book.find("order.created") is None

        await run_sql(
            database_url,
            "INSERT INTO dlq_event_config (name, max_retries) VALUES ('order.created', 2)",
        )
        await eventually(
            lambda: routes.book.find("order.created") == Route("order.created", 2), within=1
        )

        await run_sql(
            database_url,
            "UPDATE dlq_event_config SET max_retries = 7, delays = '10s, 20s', "
            "return_to = 'exchange' WHERE name = 'order.created'",
        )
        changed = Route("order.created", 7, (10 * S, 20 * S), ReturnTo.EXCHANGE)
        await eventually(lambda: routes.book.find("order.created") == changed, within=1)

        await run_sql(database_url, "DELETE FROM dlq_event_config")
        await eventually(lambda: routes.book.find("order.created") is None, within=1)


async def test_truncate_is_heard_too(postgres_url: str) -> None:
    await upgrade(postgres_url)
    await run_sql(postgres_url, "INSERT INTO dlq_event_config (name) VALUES ('a')")
    async with watched(postgres_url, Log()) as routes:
        await eventually(lambda: routes.book.find("a") == Route("a"))
        await run_sql(postgres_url, "TRUNCATE dlq_event_config")
        await eventually(lambda: routes.book.find("a") is None, within=1)


async def test_a_burst_of_changes_ends_with_the_last(database_url: str) -> None:
    await upgrade(database_url)
    async with watched(database_url, Log()) as routes:
        for number in range(30):
            await run_sql(
                database_url,
                "INSERT INTO dlq_event_config (name, max_retries) "
                f"VALUES ('burst.{number}', {number})",
            )
        await eventually(lambda: len(routes.book.exact) == 30, within=1)


async def test_bad_rows_are_said_once_and_spoil_nothing(database_url: str) -> None:
    await upgrade(database_url)
    await run_sql(
        database_url,
        "INSERT INTO dlq_event_config (name, max_retries, delays, return_to) VALUES "
        "(NULL, 1, NULL, NULL), (NULL, 2, NULL, NULL), ('less', -2, NULL, NULL), "
        "('vague', 1, 'soon', NULL), ('strange', 1, '10s,11s', NULL), "
        "('lost', 1, NULL, 'nowhere'), ('good.*', NULL, '', 'queue'), ('endless', -1, '20s', NULL)",
    )
    log = Log()
    async with watched(database_url, log) as routes:
        await asyncio.wait_for(routes.loaded.wait(), 5)
        await run_sql(database_url, "INSERT INTO dlq_event_config (name) VALUES ('later')")
        await eventually(lambda: routes.book.find("later") is not None)
        found = {key: routes.book.find(key) for key in ("less", "vague", "strange", "lost")}
        assert found == {
            "less": Route("less", None),
            "vague": Route("vague", 1),
            "strange": Route("strange", 1),
            "lost": Route("lost", 1),
        }
        assert routes.book.find("good.one") == Route("good.*")
        assert routes.book.find("endless") == Route("endless", -1, (20 * S,))
    tiers = "10s, 15s, 20s"
    assert log.lines("route_row_ignored") == [
        "dlq_event_config row 1 has no name: it is skipped",
        "dlq_event_config row 2 has no name: it is skipped",
        "dlq_event_config row 3 (less): max_retries -2 is no number from -1: the default counts",
        "dlq_event_config row 4 (vague): delays: 'soon' is not a duration: write a number and a "
        "unit, like 250ms, 30s or 5m: the tiers count",
        f"dlq_event_config row 5 (strange): delays 11s not among the tiers {tiers}, which count",
        "dlq_event_config row 6 (lost): return_to 'nowhere' is not queue or exchange: queue counts",
    ]


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_postgres_goes_away_and_comes_back(
    postgres: Server, postgres_url: str, how: str
) -> None:
    await upgrade(postgres_url)
    await run_sql(postgres_url, "INSERT INTO dlq_event_config (name) VALUES ('known')")
    log = Log()
    async with watched(postgres_url, log) as routes:
        await asyncio.wait_for(routes.loaded.wait(), 5)
        await asyncio.to_thread(postgres.stop if how == "stop" else postgres.kill)
        try:
            away = await eventually(lambda: isinstance(routes.state, Away) and routes.state)
            assert isinstance(away, Away)
            await eventually(lambda: len(log.lines("database_away")) >= 3)
            assert routes.book.find("known") == Route("known"), "the last known good"
            assert isinstance(routes.state, Away)
            assert routes.state.since == away.since
            assert "refuses connections; is it running" in routes.state.why
            with pytest.raises(LedgerAway, match=r"PostgreSQL 127\.0\.0\.1:"):
                await routes.load()
            assert all("\n" not in line for line in log.lines("database_away"))
            assert postgres.password not in "".join(log.lines("database_away"))
        finally:
            await asyncio.to_thread(postgres.start)
        await run_sql(postgres_url, "INSERT INTO dlq_event_config (name) VALUES ('new')")
        await eventually(lambda: routes.book.find("new") == Route("new"), within=10)
        await eventually(lambda: isinstance(routes.state, Up))
        await run_sql(postgres_url, "DELETE FROM dlq_event_config")
        await eventually(lambda: not routes.book.exact, within=1)


async def test_a_line_that_goes_dead_without_a_word_is_noticed_and_left(
    postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "SILENCE_SECONDS", 0.2)
    await upgrade(postgres_url)
    async with proxied("127.0.0.1", postgres.port) as proxy:
        url = postgres_url.replace(f":{postgres.port}/", f":{proxy.port}/")
        log = Log()
        async with watched(url, log) as routes:
            await asyncio.wait_for(routes.loaded.wait(), 5)
            proxy.black_hole()
            # Twice: leaving the dead line must not hang on it either.
            await eventually(lambda: len(log.lines("database_away")) == 2, within=20)
            assert "did not answer in time" in str(routes.state)
            await run_sql(postgres_url, "INSERT INTO dlq_event_config (name) VALUES ('new')")
            proxy.heal()
            await eventually(lambda: routes.book.find("new") == Route("new"), within=15)


async def test_an_sqlite_file_goes_away_and_another_takes_its_place(sqlite_url: str) -> None:
    await upgrade(sqlite_url)
    await run_sql(sqlite_url, "INSERT INTO dlq_event_config (name) VALUES ('known')")
    log, file = Log(), sqlite_file(sqlite_url)
    async with watched(sqlite_url, log) as routes:
        await eventually(lambda: routes.book.find("known") is not None)
        for path in file.parent.glob("dlo.db*"):
            path.rename(path.with_name(f"old-{path.name}"))
        await eventually(lambda: isinstance(routes.state, Away))
        assert routes.book.find("known") == Route("known"), "the last known good"
        assert not file.exists(), "watching must not make an empty file"
        await upgrade(sqlite_url)
        await run_sql(sqlite_url, "INSERT INTO dlq_event_config (name) VALUES ('new')")
        await eventually(lambda: routes.book.find("new") == Route("new"))
        assert routes.book.find("known") is None
        assert routes.state == Up()
    assert log.lines("database_away")[0] == (
        f"SQLite {file} does not exist; run: dlo db upgrade; trying again in 0.25 s"
    )


async def test_a_database_that_was_never_migrated_says_what_to_do(postgres_url: str) -> None:
    log = Log()
    async with watched(postgres_url, log) as routes:
        await eventually(lambda: log.lines("database_away"))
        assert isinstance(routes.state, Away)
        assert routes.state.why.endswith("has no table dlq_event_config; run: dlo db upgrade")
        assert not routes.loaded.is_set()
        await upgrade(postgres_url)
        await asyncio.wait_for(routes.loaded.wait(), 5)
        await eventually(lambda: isinstance(routes.state, Up))


async def test_routes_have_a_state_before_they_are_read(sqlite_url: str) -> None:
    routes = Routes(sqlite_url, poll=POLL, tiers=TIERS, log=Log().logger)
    assert isinstance(routes.state, Away)
    assert routes.state.why.endswith("has not been read yet")
    assert routes.book.find("anything") is None
    await routes.close()
