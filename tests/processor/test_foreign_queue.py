"""A queue that nobody here declared, in any language, gets delayed retries and a dead letter at the end."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
from aio_pika.abc import AbstractIncomingMessage
from pamqp.encode import field_table

from service.ledger.schema import upgrade
from tests.kit.broker import buried, channel_to, clean, depth, drain
from tests.kit.process import Service, environment, running
from tests.kit.shop import Shop, open_shop, reject_all
from tests.kit.table import knows_routes, run_sql
from tests.kit.wire import field, properties, wire_to
from tests.servers.waiting import eventually

INSERT = "INSERT INTO dlq_event_config (name, max_retries) VALUES ('order.created', 2)"
BODY = b'{"order": 42, "text": "\xc3\xa4"}'
CUSTOM: dict[str, Any] = {
    "tenant": "acme",
    "ratio": 0.1,
    "tries": 7,
    "vip": True,
    "nothing": None,
    "since": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
    "nested": {"a": {"b": ["c", 1, False]}},
    "token": bytearray(b"\x00\xff\x80"),
}
PROPERTIES: dict[str, Any] = {
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "correlation_id": "c-42",
    "message_id": "order-42",
    "type": "order",
    "app_id": "shop",
    "priority": 3,
}
# Client libraries write 0.1 with half its digits; a stranger may write all of them.
LETTER = properties(
    headers=field_table({name: CUSTOM[name] for name in CUSTOM if name != "ratio"})[4:]
    + field("ratio", b"d", struct.pack(">d", CUSTOM["ratio"])),
    **{name: v if isinstance(v, int) else v.encode() for name, v in PROPERTIES.items()},
)


@pytest.fixture
async def clean_url(rabbit_url: str) -> AsyncIterator[str]:
    """A broker with nothing of ours on it."""
    await clean(rabbit_url)
    yield rabbit_url
    await clean(rabbit_url)


async def test_three_deliveries_ten_and_fifteen_seconds_apart_with_the_default_waits(
    clean_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    given = environment(clean_url, sqlite_url)
    del given["DLO_DLQ_PROCESSOR__TIERS"]
    async with running(Service(given, tmp_path)) as service, channel_to(clean_url) as channel:
        run_sql(sqlite_url, INSERT)
        await knows_routes(service, 1)
        await the_story(clean_url, await open_shop(channel), waits=(10, 15))


async def test_a_row_inserted_into_postgresql_counts_within_a_second(
    clean_url: str, postgres_url: str, tmp_path: Path
) -> None:
    await upgrade(postgres_url)
    service = Service(environment(clean_url, postgres_url), tmp_path)
    async with running(service), channel_to(clean_url) as channel:
        owner = await asyncpg.connect(postgres_url.replace("+asyncpg", ""))
        await owner.execute(INSERT)
        await owner.close()
        await eventually(lambda: service.lines("routes_read")[-1]["routes"] == 1, within=1)
        await the_story(clean_url, await open_shop(channel), waits=(0.1, 0.15))


async def test_the_same_on_quorum_queues(clean_url: str, sqlite_url: str, tmp_path: Path) -> None:
    given = environment(clean_url, sqlite_url, DLO_QUEUES__TYPE="quorum")
    async with running(Service(given, tmp_path)) as service, channel_to(clean_url) as channel:
        run_sql(sqlite_url, INSERT)
        await knows_routes(service, 1)
        await the_story(clean_url, await open_shop(channel, "quorum"), waits=(0.1, 0.15))


async def the_story(url: str, shop: Shop, waits: tuple[float, float]) -> None:
    """A letter rejected each time; a letter of which no route knows."""
    await shop.another("audit", "#")
    await shop.consume(reject_all)
    async with wire_to(url) as wire:
        await wire.publish("shop", "order.created", [(LETTER, BODY)])
    await shop.publish("order.unheard-of", b"nobody", message_id="stray")
    (stray,) = await buried(shop.channel)
    assert stray.headers["x-dlo-reason"] == "no route for order.unheard-of"
    assert (stray.message_id, stray.body) == ("stray", b"nobody")
    (dead,) = await buried(shop.channel, within=sum(waits) + 5)
    _three_deliveries(shop, waits)
    _the_dead_letter(dead)
    assert {m.message_id for m in await drain(shop.channel, "audit")} == {"order-42", "stray"}
    assert await depth(shop.channel, "orders") == 0


def _three_deliveries(shop: Shop, waits: tuple[float, float]) -> None:
    first, second, third = [seen for seen in shop.seen if seen.message.message_id != "stray"]
    for before, after, wait in ((first, second, waits[0]), (second, third, waits[1])):
        assert wait <= after.at - before.at < wait + 1
    for number, seen in enumerate((first, second, third)):
        assert seen.message.headers.get("x-retry-count") == (number or None)
        _is_intact(seen.message)
    for back in (second.message, third.message):
        assert (back.exchange, back.routing_key) == ("", "orders")
        assert back.headers["x-original-exchange"] == "shop"
        assert back.headers["x-original-routing-key"] == "order.created"


def _the_dead_letter(dead: AbstractIncomingMessage) -> None:
    _is_intact(dead)
    headers = dead.headers
    assert headers["x-retry-count"] == 2
    assert headers["x-original-queue"] == "orders"
    assert headers["x-original-exchange"] == "shop"
    assert headers["x-original-routing-key"] == "order.created"
    assert headers["x-dlo-id"] == "order-42"
    assert headers["x-dlo-flow"] == "dlq_processor"
    assert headers["x-dlo-reason"] == "failed 3 times: rejected by a consumer of orders"
    assert headers["x-dlo-error"] == "rejected by a consumer of orders"
    assert headers["x-dlo-deaths"] == {"rejected": 3}
    assert len(str(headers["x-dlo-signature"])) == 64
    assert not [name for name in headers if name.startswith(("x-death", "x-first-", "x-last-"))]


def _is_intact(message: AbstractIncomingMessage) -> None:
    assert message.body == BODY
    assert {name: getattr(message, name) for name in PROPERTIES} == PROPERTIES
    assert {name: message.headers[name] for name in CUSTOM} == CUSTOM
    assert message.delivery_mode == 2 or "x-retry-count" not in message.headers
