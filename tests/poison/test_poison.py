"""Every named poison among twenty innocents: they come home once, it is in `dlq-queue`, nobody reconnects."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from yarl import URL

from tests.kit.broker import FOREIGN, channel_to, depth
from tests.kit.lanes import BOTH_LANES, CONNECTIONS
from tests.kit.process import Service
from tests.kit.shop import open_shop
from tests.kit.wire import Taken, Wire, properties, wire_to
from tests.poison.poisons import FORGED, MAX_BODY, POISONS, SPENT, Poison
from tests.servers.waiting import eventually

INNOCENT = properties(content_type=b"text/plain", delivery_mode=2)
OURS = ("retry-queue", "queue.delay.1", "retry-queue-1")

pytestmark = BOTH_LANES


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """One retry for the innocents."""
    return {
        "DLO_DLQ_PROCESSOR__TIERS": '["100ms"]',
        "DLO_ROUTES": f'{{"order.created" = 1, "{SPENT}" = 0}}',
        "DLO_LIMITS__MAX_BODY": f"{MAX_BODY}B",
    }


@pytest.fixture
async def wire(rabbit_url: str, service: Service, lane: str) -> AsyncIterator[Wire]:
    """A stranger's connection, the foreign team's queues, and no reconnection of ours meanwhile."""
    async with channel_to(rabbit_url) as channel:
        for name in FOREIGN:
            await channel.queue_delete(name)
        await (await channel.get_queue("dlq-queue")).purge()
        await open_shop(channel)
    port = URL(rabbit_url).port or 5672
    before = service.connections(port)
    async with wire_to(rabbit_url) as wire:
        yield wire
    assert len(before) == CONNECTIONS[lane]
    assert service.connections(port) == before
    async with channel_to(rabbit_url) as channel:
        assert [await depth(channel, name) for name in OURS] == [0, 0, 0]
    assert service.get("/readyz")[0] == 200


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
async def test_a_poison_among_innocents(wire: Wire, poison: Poison) -> None:
    innocents = [(INNOCENT, f"innocent {n}".encode()) for n in range(20)]
    await wire.publish("shop", "order.created", innocents[:10])
    await wire.publish("shop", poison.key, [(poison.properties, poison.body)])
    await wire.publish("shop", "order.created", innocents[10:])
    await reject(wire, "orders", 21)
    (dead,) = await collect(wire, "dlq-queue", 1)
    assert dead.body == poison.body
    assert poison.reason.encode() in dead.properties
    assert poison.kept in dead.properties
    home = await collect(wire, "orders", 20)
    assert sorted(letter.body for letter in home) == sorted(body for _, body in innocents)


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED)
async def test_a_forged_death_sent_straight_to_us(wire: Wire, headers: bytes) -> None:
    letter = (properties(headers=headers), b"forged")
    await wire.publish("retry-exchange", "retry-routing-key", [letter])
    (dead,) = await collect(wire, "dlq-queue", 1)
    assert dead.body == b"forged"
    assert b"no origin: " in dead.properties
    assert b"x-death" not in dead.properties


async def reject(wire: Wire, queue: str, count: int) -> None:
    """Take so many letters, then refuse them all: none may come back between the others."""
    taken = [await eventually(lambda: wire.get(queue)) for _ in range(count)]
    for letter in taken:
        assert letter is not None
        wire.reject(letter)


async def collect(wire: Wire, queue: str, count: int) -> list[Taken]:
    """So many letters of a queue, within five seconds, and not one more."""
    taken: list[Taken] = []

    async def enough() -> bool:
        taken.extend(await wire.take(queue))
        return len(taken) >= count

    await eventually(enough, within=5)
    assert len(taken) == count
    return taken
