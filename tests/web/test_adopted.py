"""Adopted queues over HTTP: the settings' and the operators', on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from service.front import Adopting
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.settings import load
from service.web.api import adopted, audit, create_api
from tests.kit.broker import channel_to
from tests.web.conftest import client_of, problem

PATH = "/api/v1/adopted"


@pytest.fixture
async def client(book: Book, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    (tmp_path / "settings.toml").write_text('[[adopt]]\nqueue = "named.dlq"\n')
    settings = load(tmp_path, {"DLO_RABBIT__URL": "amqp://127.0.0.1:1/"})
    adopting = Adopting(book, settings, frozenset({"dlq-queue"}), lambda _queue: "")
    async with client_of(create_api([adopted.router(adopting), audit.router(book)], "1")) as client:
        yield client


async def test_what_is_wrong_with_an_adopted_queue_is_said(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    settings = load(tmp_path, {"DLO_RABBIT__URL": rabbit_url})
    wrong = {"held.dlq": "its letters wait", "nosuch.dlq": ""}
    await upgrade(sqlite_url)
    book = Book(sqlite_url)
    api = create_api(
        [adopted.router(Adopting(book, settings, frozenset(), wrong.__getitem__))], "1"
    )
    async with client_of(api) as client, channel_to(rabbit_url) as channel:
        await channel.declare_queue("held.dlq", durable=True)
        made = (await client.post(PATH, json={"queue": "nosuch.dlq"})).json()["says"]
        assert made.startswith("there is no queue nosuch.dlq on RabbitMQ 127.0.0.1:")
        assert (await client.post(PATH, json={"queue": "held.dlq"})).json()["says"] == (
            "its letters wait"
        )
        wrong["held.dlq"] = ""
        listed = (await client.get(PATH)).json()["items"]
        assert {one["queue"]: one["says"] for one in listed} == {"nosuch.dlq": made, "held.dlq": ""}
        await channel.queue_delete("held.dlq")
    await book.close()


async def test_queues_are_adopted_and_released(client: httpx2.AsyncClient) -> None:
    made = await client.post(PATH, json={"queue": "orders/ä.dlq", "why": "theirs is dead"})
    assert (made.status_code, made.json()["source"], made.json()["who"]) == (
        201,
        "operator",
        "local",
    )
    assert (await client.post(PATH, json={"queue": "orders/ä.dlq"})).status_code == 201
    listed = (await client.get(PATH)).json()["items"]
    assert "RabbitMQ is away" in listed[0]["says"]
    assert [(one["queue"], one["source"]) for one in listed] == [
        ("named.dlq", "settings"),
        ("orders/ä.dlq", "operator"),
    ]
    gone = await client.delete(f"{PATH}/orders%2F%C3%A4.dlq")
    assert gone.status_code == 204
    problem(await client.delete(f"{PATH}/orders%2F%C3%A4.dlq"), 404)
    problem(await client.delete(f"{PATH}/named.dlq"), 404)
    deeds = (await client.get("/api/v1/audit")).json()["items"]
    assert [deed["action"] for deed in deeds] == ["queue.leave", "queue.adopt"]
    assert (deeds[1]["subject"], deeds[1]["why"]) == ("queue:orders/ä.dlq", "theirs is dead")


async def test_what_cannot_be_adopted(client: httpx2.AsyncClient) -> None:
    for queue in ("dlq-queue", "named.dlq"):
        assert queue in problem(await client.post(PATH, json={"queue": queue}), 409)["detail"]
    for queue in ("", "a\x00b", "x" * 256, "é" * 200):
        problem(await client.post(PATH, json={"queue": queue}), 422)
    problem(await client.delete(f"{PATH}/%00"), 404)
