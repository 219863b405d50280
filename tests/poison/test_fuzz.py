"""Two thousand letters written by chance: every one ends in `dlq-queue`, and the service stays as it was."""

from __future__ import annotations

import os
import struct
from collections import Counter
from random import Random

import pytest
from yarl import URL

from tests.kit.broker import channel_to, depth
from tests.kit.process import Service
from tests.kit.shop import DEAD_LETTERS, open_shop
from tests.kit.wire import wire_to
from tests.poison import fuzz
from tests.servers.waiting import eventually

LETTERS = int(os.environ.get("DLO_TEST_FUZZ", "2000"))
SEED = int(os.environ.get("DLO_TEST_SEED", "20260101"))
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
        connections, memory = service.connections(port), service.memory()
        letters = [(fuzz.letter(chance), fuzz.body(chance, n)) for n in range(LETTERS)]
        await wire.publish("shop", "fuzz.one", letters)

        async def all_buried() -> bool:
            return await depth(channel, "dlq-queue") >= LETTERS

        await eventually(all_buried, within=60, pause=0.1)
        dead = await wire.take("dlq-queue")
        numbers = Counter(struct.unpack_from(">I", letter.body)[0] for letter in dead)
        assert numbers == Counter(range(LETTERS))
        assert {letter.body for letter in dead} == {body for _, body in letters}
        places = ("billing", "retry-queue", "queue.delay.1", "retry-queue-1")
        assert [await depth(channel, name) for name in places] == [0, 0, 0, 0]
    assert service.connections(port) == connections
    assert service.memory() - memory < GROWTH
    assert not any(b"our own fault" in letter.properties for letter in dead)
