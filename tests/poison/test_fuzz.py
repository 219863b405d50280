"""Two thousand letters written by chance: every one ends in `dlq-queue`, byte for byte but for the marks."""

from __future__ import annotations

import os
import struct
from collections import Counter
from random import Random

import pytest
from yarl import URL

from service.core.marks import OURS, is_dropped
from tests.kit.broker import channel_to, depth
from tests.kit.process import Service
from tests.kit.shop import DEAD_LETTERS, open_shop
from tests.kit.unpacked import fields, unpacked
from tests.kit.wire import Taken, wire_to
from tests.poison import fuzz
from tests.servers.waiting import eventually

LETTERS = int(os.environ.get("DLO_TEST_FUZZ", "2000"))
SEED = int(os.environ.get("DLO_TEST_SEED", "20260101"))
LEFT_OUT = ("expiration", "user_id")
GROWTH = 50 * 1024 * 1024


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """One retry: what can be read goes all the way round."""
    return {
        "DLO_DLQ_PROCESSOR__TIERS": '["100ms"]',
        "DLO_ROUTES": '{"fuzz.#" = 1, "billing" = 1}',
    }


async def test_letters_written_by_chance_all_end_with_people(
    service: Service, rabbit_url: str
) -> None:
    print(f"DLO_TEST_SEED={SEED} DLO_TEST_FUZZ={LETTERS}")
    chance = Random(SEED)
    port = URL(rabbit_url).port or 5672
    async with channel_to(rabbit_url) as channel, wire_to(rabbit_url) as wire:
        shop = await open_shop(channel)
        # Nobody consumes: letters fail by expiring, at once.
        await shop.another("billing", "fuzz.#", **DEAD_LETTERS, **{"x-message-ttl": 1})
        # The same letters as the service gets them, for RabbitMQ itself writes some fields anew.
        control = await channel.declare_queue("audit", durable=True)
        await control.bind("retry-exchange", "retry-routing-key")
        connections, memory = service.connections(port), service.memory()
        letters = [(fuzz.letter(chance), fuzz.body(chance, n)) for n in range(LETTERS)]
        await wire.publish("shop", "fuzz.one", letters)

        async def all_buried() -> bool:
            return await depth(channel, "dlq-queue") >= LETTERS

        await eventually(all_buried, within=60 + LETTERS / 200, pause=0.1)
        dead = await wire.take("dlq-queue")
        numbers = Counter(_number(letter) for letter in dead)
        assert numbers == Counter(range(LETTERS))
        assert {letter.body for letter in dead} == {body for _, body in letters}
        given = {_number(each): each for each in reversed(await wire.take("audit"))}
        for letter in dead:
            _is_the_same(given[_number(letter)], letter)
        places = ("billing", "retry-queue", "queue.delay.1", "retry-queue-1")
        assert [await depth(channel, name) for name in places] == [0, 0, 0, 0]
    assert service.connections(port) == connections
    assert service.memory() - memory < GROWTH
    assert not any(b"our own fault" in letter.properties for letter in dead)


def _is_the_same(given: Taken, dead: Taken) -> None:
    """Whatever the sender wrote is there as it was; what is new are our marks. (RabbitMQ 4 puts the
    fields of a letter that it dead-letters into an order of its own: so each for itself.)"""
    before, after = unpacked(given.properties), unpacked(dead.properties)
    sent, found = fields(before.pop("headers", b"")), fields(after.pop("headers"))
    kept = [field for field in sent if not is_dropped(field[0].decode("utf-8", "replace"))]
    assert Counter(found) - Counter(kept) == Counter(
        f for f in found if f[0].decode("utf-8", "replace") in OURS
    )
    assert not Counter(kept) - Counter(found)
    assert after.pop("delivery_mode") == b"\x02"
    assert after == {n: v for n, v in before.items() if n not in ("delivery_mode", *LEFT_OUT)}
    assert dead.body == given.body


def _number(letter: Taken) -> int:
    number: int = struct.unpack_from(">I", letter.body)[0]
    return number
