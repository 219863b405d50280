"""A message that a stranger sent cannot steer us: forged marks, smuggled copies, letters from nowhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from aio_pika import Message
from yarl import URL

from service.core.marks import Marks, Origin, Seal, stamp
from tests.kit.broker import buried, depth, drain
from tests.kit.lanes import BOTH_LANES
from tests.kit.process import KEY, Service
from tests.kit.shop import DEAD_LETTERS, Shop, reject_all, retried
from tests.kit.wire import properties, wire_to
from tests.servers.waiting import eventually

pytestmark = BOTH_LANES


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """Every order is retried twice; `billing` is the key of what is sent straight to that queue."""
    return {"DLO_ROUTES": '{"order.#" = 2, "billing" = 2}'}


def marks(retries: int, queue: str, key: str = KEY) -> dict[str, Any]:
    """Marks as a holder of this key writes them."""
    origin = Origin(queue, "shop", "order.created")
    written = Marks("forged", "dlq_processor", origin, retries, datetime.now(UTC))
    return dict(stamp(written, Seal(key.encode())))


FORGED = {
    "unsigned": {**marks(99, "orders"), "x-dlo-signature": "0" * 64},
    "no signature": {n: v for n, v in marks(99, "orders").items() if n != "x-dlo-signature"},
    "signature of another type": {**marks(99, "orders"), "x-dlo-signature": 7},
    "signed with another key": marks(2, "orders", "somebody else's key, as long"),
    "signed for another queue": marks(2, "billing"),
    "a changed count": {**marks(2, "orders"), "x-retry-count": 0},
    "a huge count": {**marks(2, "orders"), "x-retry-count": 2**63 - 1},
    "a negative count": {**marks(2, "orders"), "x-retry-count": -5},
    "a count of text": {**marks(2, "orders"), "x-retry-count": "2"},
    "a changed origin": {**marks(2, "orders"), "x-original-queue": "billing"},
    "only a count": {"x-retry-count": 2},
}


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED)
async def test_forged_marks_are_a_first_failure(
    service: Service, shop: Shop, headers: dict[str, Any]
) -> None:
    await shop.another("billing", "nothing")
    await shop.consume(reject_all)
    await shop.publish("order.created", message_id="forged", headers=headers)
    (dead,) = await buried(shop.channel)
    assert len(shop.seen) == 3  # both retries were made, and no more
    assert dead.headers["x-retry-count"] == 2
    assert dead.headers["x-original-queue"] == "orders"
    assert await depth(shop.channel, "billing") == 0


async def test_marks_copied_to_another_queue_are_a_first_failure(
    service: Service, shop: Shop
) -> None:
    """A consumer forwards what it got, headers and all."""
    billing = await shop.another("billing", "nothing", **DEAD_LETTERS)
    await shop.consume(retried)
    await shop.publish("order.created", message_id="copied")
    await eventually(lambda: len(shop.seen) == 2)
    copy = Message(b"{}", headers=shop.seen[1].message.headers, message_id="copied")
    await shop.channel.default_exchange.publish(copy, "billing")
    await shop.consume(lambda m: m.headers.get("x-original-queue") == "billing", billing)
    await eventually(lambda: len(shop.seen) == 4)
    assert shop.headers()[3]["x-retry-count"] == 1
    assert shop.headers()[3]["x-original-exchange"] == ""


async def test_marks_of_another_letter_are_a_first_failure(service: Service, shop: Shop) -> None:
    await shop.consume(reject_all)
    await shop.publish("order.created", message_id="another", headers=marks(2, "orders"))
    (dead,) = await buried(shop.channel)
    assert len(shop.seen) == 3
    assert dead.headers["x-dlo-id"] == "another"


async def test_a_letter_without_an_id_gets_one_mark_for_life(rabbit_url: str, shop: Shop) -> None:
    await shop.consume(reject_all)
    async with wire_to(rabbit_url) as wire:  # client libraries invent an id
        await wire.publish("shop", "order.created", [(properties(), b"{}")])
    (dead,) = await buried(shop.channel)
    assert {seen.message.message_id for seen in shop.seen} == {None}
    assert dead.message_id is None
    ids = [headers.get("x-dlo-id") for headers in shop.headers()]
    assert ids == [None, dead.headers["x-dlo-id"], dead.headers["x-dlo-id"]]
    assert len(str(dead.headers["x-dlo-id"])) == 32


async def test_a_letter_published_to_the_retry_exchange_has_no_origin(
    service: Service, shop: Shop
) -> None:
    exchange = await shop.channel.get_exchange("retry-exchange")
    await exchange.publish(Message(b"lost", message_id="lost"), "retry-routing-key")
    (dead,) = await buried(shop.channel)
    reason = "no origin: it was not dead-lettered here by a queue"
    assert (dead.body, dead.headers["x-dlo-reason"]) == (b"lost", reason)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "no origin: no marks"),
        (
            {**marks(1, "billing"), "x-dlo-signature": "0"},
            "no origin: marks that our key did not sign; they name the queue billing",
        ),
        (
            {**marks(1, "billing"), "x-retry-count": "one"},
            "no origin: marks that cannot be read; they name the queue billing",
        ),
        (marks(1, "billing"), "no origin: its marks belong to another letter"),
    ],
)
async def test_a_letter_published_to_a_returning_queue_goes_nowhere_of_its_choice(
    service: Service, shop: Shop, headers: dict[str, Any], reason: str
) -> None:
    await shop.another("billing", "nothing")
    stray = Message(b"stray", message_id="stray", headers=headers)
    await shop.channel.default_exchange.publish(stray, "retry-queue-1")
    (dead,) = await buried(shop.channel)
    assert (dead.body, dead.headers["x-dlo-reason"]) == (b"stray", reason)
    assert await depth(shop.channel, "billing") == 0


async def test_nothing_is_ever_sent_to_reply_to(service: Service, shop: Shop) -> None:
    await shop.another("audit", "nothing")
    await shop.consume(reject_all)
    await shop.publish("order.created", reply_to="audit", message_id="asks")
    (dead,) = await buried(shop.channel)
    assert dead.reply_to == "audit"
    assert await depth(shop.channel, "audit") == 0


async def test_what_would_steer_the_broker_does_not_travel_on(service: Service, shop: Shop) -> None:
    await shop.another("audit", "nothing")
    await shop.consume(reject_all)
    await shop.publish(
        "order.created",
        expiration=60,
        user_id=URL(service.environment["DLO_RABBIT__URL"]).user,
        headers={"CC": ["nothing"], "BCC": ["nothing"], "kept": "yes"},
    )
    (dead,) = await buried(shop.channel)
    again, last = shop.seen[1].message, shop.seen[2].message
    assert len(await drain(shop.channel, "audit")) == 1  # the sender's own copy, and no more
    for message in (again, last, dead):
        assert message.expiration is None
        assert message.user_id is None
        assert message.headers["kept"] == "yes"
        assert not {"CC", "BCC"} & message.headers.keys()
