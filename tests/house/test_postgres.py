"""A private PostgreSQL: killed, restarted, adopted, with its data; nobody enters without its password."""

from __future__ import annotations

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from deploy.local.postgres import Server
from deploy.local.trouble import Trouble


async def test_a_fresh_database_answers(postgres_url: str) -> None:
    engine = create_async_engine(postgres_url)
    async with engine.connect() as connection:
        assert (await connection.execute(text("select count(*) from pg_tables"))).scalar_one() > 0
    await engine.dispose()


def test_what_was_committed_survives_a_kill(postgres: Server) -> None:
    before = postgres.url()
    postgres.query("create table kept as select 42 as answer")
    postgres.kill()
    assert not postgres.is_running
    postgres.start()
    assert postgres.url() == before
    assert postgres.query("select answer from kept") == "42"


def test_a_restart_keeps_data_and_place(postgres: Server) -> None:
    database = postgres.create_database("moved")
    pid = postgres.pid
    postgres.restart()
    assert postgres.pid != pid
    assert postgres.url("moved") == database
    postgres.drop_database("moved")


def test_a_server_left_by_another_run_is_taken_as_it_is(postgres: Server) -> None:
    found = Server(postgres.folder)
    found.start()
    assert found.pid == postgres.pid


async def test_a_neighbour_without_the_password_is_refused(postgres: Server) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(
            host="127.0.0.1", port=make_url(postgres.url()).port, user="postgres", password="guess"
        )


def test_a_query_that_fails_says_why(postgres: Server) -> None:
    with pytest.raises(Trouble, match='relation "nowhere" does not exist'):
        postgres.query("select * from nowhere")
