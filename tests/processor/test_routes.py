"""How often, after which waits and whereto: what a row of `dlq_event_config` and the settings can say."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage

from tests.kit.broker import buried, depth, drain
from tests.kit.lanes import BOTH_LANES
from tests.kit.process import Service
from tests.kit.shop import DEAD_LETTERS, Shop, reject_all, retried
from tests.kit.table import add_route
from tests.servers.waiting import eventually

ROUTES = """\
{ "order.set" = 1, "order.taken" = 3, "order.waits" = { max_retries = 1, delays = ["200ms"] }, \
"rk.test.#" = 2 }
"""


pytestmark = BOTH_LANES


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """Four waits, two retries where a route is silent, routes of the settings, and the drill."""
    return {
        "DLO_DLQ_PROCESSOR__TIERS": '["100ms","150ms","200ms","250ms"]',
        "DLO_DLQ_PROCESSOR__MAX_RETRIES": "2",
        "DLO_DLQ_PROCESSOR__DRILL": "true",
        "DLO_ROUTES": ROUTES,
    }


def waits(shop: Shop) -> list[float]:
    """Seconds between the deliveries."""
    return [after.at - before.at for before, after in pairwise(shop.seen)]


def assert_waits(shop: Shop, *expected: float) -> None:
    """Never early, late by less than a second."""
    assert len(waits(shop)) == len(expected)
    assert all(wait <= real < wait + 1 for real, wait in zip(waits(shop), expected, strict=True))


@pytest.mark.parametrize(
    ("max_retries", "expected"),
    [
        (0, ()),
        (1, (0.1,)),
        (None, (0.1, 0.15)),  # the default of the settings
        (4, (0.1, 0.15, 0.2, 0.25)),  # the fourth entry of the settings is a fourth queue
        (6, (0.1, 0.15, 0.2, 0.25, 0.25, 0.25)),  # the last wait repeats
    ],
)
async def test_max_retries(
    service: Service, shop: Shop, max_retries: int | None, expected: tuple[float, ...]
) -> None:
    key = f"order.max.{max_retries}"
    await add_route(service, key, max_retries)
    await shop.consume(reject_all)
    await shop.publish(key)
    (dead,) = await buried(shop.channel)
    assert_waits(shop, *expected)
    assert dead.headers["x-retry-count"] == len(expected)
    assert str(dead.headers["x-dlo-reason"]).startswith("failed ")


async def test_without_end_the_last_wait_repeats(service: Service, shop: Shop) -> None:
    await add_route(service, "order.endless", -1)

    def accepts(message: AbstractIncomingMessage) -> bool:
        return message.headers.get("x-retry-count") == 7

    await shop.consume(accepts)
    await shop.publish("order.endless")
    await eventually(lambda: len(shop.seen) == 8)
    assert_waits(shop, 0.1, 0.15, 0.2, *[0.25] * 4)
    assert await depth(shop.channel, "dlq-queue") == 0


async def test_an_exact_name_beats_a_pattern_and_the_nearer_pattern_wins(
    service: Service, shop: Shop
) -> None:
    await add_route(service, "order.eu.#", 0)
    await add_route(service, "order.eu.*.late", 1)
    await add_route(service, "order.eu.paid.late", 3)
    await shop.consume(reject_all)
    for key in ("order.eu.paid.late", "order.eu.lost.late", "order.eu.new"):
        await shop.publish(key, message_id=key)
    dead = await buried(shop.channel, 3)
    assert {m.message_id: m.headers["x-retry-count"] for m in dead} == {
        "order.eu.paid.late": 3,
        "order.eu.lost.late": 1,
        "order.eu.new": 0,
    }


async def test_the_table_wins_over_the_settings(service: Service, shop: Shop) -> None:
    await add_route(service, "order.taken", 0)
    await shop.consume(reject_all)
    for key in ("order.set", "order.taken"):
        await shop.publish(key, message_id=key)
    dead = await buried(shop.channel, 2)
    assert {m.message_id: m.headers["x-retry-count"] for m in dead} == {
        "order.set": 1,
        "order.taken": 0,
    }


async def test_a_route_of_the_settings_names_its_waits(service: Service, shop: Shop) -> None:
    await shop.consume(reject_all)
    await shop.publish("order.waits")
    await buried(shop.channel)
    assert_waits(shop, 0.2)


async def test_a_row_names_its_waits(service: Service, shop: Shop) -> None:
    await add_route(service, "order.own", 3, delays="200ms, 100ms")
    await shop.consume(reject_all)
    await shop.publish("order.own")
    await buried(shop.channel)
    assert_waits(shop, 0.2, 0.1, 0.1)


async def test_return_to_exchange_gives_every_queue_there_a_copy(
    service: Service, shop: Shop
) -> None:
    await add_route(service, "order.again", 1, return_to="exchange")
    await shop.another("audit", "#")
    await shop.consume(retried)
    await shop.publish("order.again", message_id="again")
    await eventually(lambda: len(shop.seen) == 2)
    back = shop.seen[1].message
    assert (back.exchange, back.routing_key) == ("shop", "order.again")
    copies = await drain(shop.channel, "audit")
    assert [m.headers.get("x-retry-count") for m in copies] == [None, 1]


async def test_a_routing_key_of_255_bytes_is_retried_too(service: Service, shop: Shop) -> None:
    key = "order." + "ä" * 124 + "x"
    assert len(key.encode()) == 255
    await add_route(service, "order.*", 1)
    await shop.consume(reject_all)
    await shop.publish(key)
    (dead,) = await buried(shop.channel)
    assert_waits(shop, 0.1)
    assert dead.headers["x-original-routing-key"] == key


async def test_one_message_that_two_queues_reject_is_two_letters(
    service: Service, shop: Shop
) -> None:
    await add_route(service, "order.split", 2)
    billing = await shop.another("billing", "order.split", **DEAD_LETTERS)
    await shop.consume(reject_all)
    await shop.consume(reject_all, billing)
    await shop.publish("order.split", message_id="both")
    dead = await buried(shop.channel, 2)
    assert [m.message_id for m in dead] == ["both", "both"]
    assert {m.headers["x-original-queue"] for m in dead} == {"orders", "billing"}
    assert [m.headers["x-retry-count"] for m in dead] == [2, 2]
    assert len(shop.seen) == 6
    returned = [seen.message for seen in shop.seen if seen.message.headers.get("x-retry-count")]
    assert all(m.routing_key == m.headers["x-original-queue"] for m in returned)


async def test_a_queue_deleted_while_its_letter_waits(service: Service, shop: Shop) -> None:
    await add_route(service, "order.orphan", 1, delays="250ms")
    await shop.consume(reject_all)
    await shop.publish("order.orphan", message_id="orphan")
    await eventually(lambda: len(shop.seen) == 1)
    await eventually(lambda: service.verdicts("retry")[-1]["letter"] == "orphan")
    await shop.channel.queue_delete("orders")
    (dead,) = await buried(shop.channel)
    assert dead.headers["x-dlo-reason"] == "nobody takes it any more at queue orders"
    assert dead.headers["x-original-queue"] == "orders"
    assert dead.headers["x-retry-count"] == 1


async def test_the_drill_ends_as_its_keys_say(service: Service, shop: Shop) -> None:
    exchange = await shop.channel.get_exchange("test-retry-exchange")
    for key in ("rk.test.pass", "rk.test.fail", "rk.test.fail.pass"):
        await exchange.publish(Message(b"{}", message_id=key), key)
    (dead,) = await buried(shop.channel)
    assert dead.message_id == "rk.test.fail"
    retries = Counter(line["letter"] for line in service.verdicts("retry"))
    assert (retries["rk.test.pass"], retries["rk.test.fail"], retries["rk.test.fail.pass"]) == (
        0,
        2,
        1,
    )
    for queue in ("test-pass-queue", "test-fail-queue", "test-fail-pass-queue"):
        assert await depth(shop.channel, queue) == 0
