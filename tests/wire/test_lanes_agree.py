"""The same letters through both lanes: the same end, the same marks, the same bytes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from service.edge.fields import without
from tests.kit.broker import channel_to, clean, depth
from tests.kit.fixtures import sqlite_in
from tests.kit.lanes import LANE, LANES
from tests.kit.process import Service, environment, running
from tests.kit.shop import DEAD_LETTERS, open_shop
from tests.kit.unpacked import unpacked
from tests.kit.wire import properties, wire_to
from tests.poison import fuzz
from tests.poison.poisons import FORGED, MAX_BODY, POISONS
from tests.servers.waiting import eventually

ROUTES = '{"fuzz.#" = 1, "order.created" = 2}'
CHANCE = Random(6)
# Sent to a queue that lets go at once: absurd letters, and letters written by chance.
# (Not those of which RabbitMQ itself makes an end: it drops what seems to go in circles by expiring.)
DROPPED = "forged deaths in our own queues"
ABSURD = [poison for name, poison in POISONS.items() if name != DROPPED]
FAILING = [(each.properties, b"%d " % n + each.body) for n, each in enumerate(ABSURD)]
FAILING += [(fuzz.letter(CHANCE), b"%d " % n) for n in range(100, 500)]
STRAIGHT = [(properties(headers=each), b"%d " % n) for n, each in enumerate(FORGED.values(), 900)]
# What no two runs have in common, and the id of a letter that has none.
OWN = (b"x-dlo-first-failure", b"x-dlo-signature", b"x-dlo-due")


async def ends(lane: str, rabbit_url: str, folder: Path) -> dict[bytes, dict[str, bytes]]:
    """Where every letter is in the end, and what it wears, by its number."""
    settings = {
        LANE: lane,
        "DLO_ROUTES": ROUTES,
        "DLO_DLQ_PROCESSOR__TIERS": '["50ms"]',
        "DLO_LIMITS__MAX_BODY": f"{MAX_BODY}B",
    }
    await clean(rabbit_url)
    service = Service(environment(rabbit_url, sqlite_in(folder), **settings), folder)
    async with running(service), channel_to(rabbit_url) as channel, wire_to(rabbit_url) as wire:
        shop = await open_shop(channel)
        await shop.another("billing", "fuzz.#", **DEAD_LETTERS, **{"x-message-ttl": 1})
        await wire.publish("shop", "fuzz.one", FAILING)
        await wire.publish("retry-exchange", "retry-routing-key", STRAIGHT)

        async def all_buried() -> bool:
            return await depth(channel, "dlq-queue") == len(FAILING) + len(STRAIGHT)

        await eventually(all_buried, within=20)
        dead = {each.body.split()[0]: each.properties for each in await wire.take("dlq-queue")}
    return {number: _compared(each) for number, each in dead.items()}


def _compared(bytes_of_it: bytes) -> dict[str, bytes]:
    """Empty properties mean the same as none, and aio-pika cannot tell them apart."""
    found = {n: v for n, v in unpacked(bytes_of_it).items() if v != b"\0"}
    own = OWN if "message_id" in found else (*OWN, b"x-dlo-id")
    return found | {"headers": without(found["headers"], lambda name: name in own)}


async def test_a_letter_ends_the_same_whatever_its_lane(rabbit_url: str, tmp_path: Path) -> None:
    found = []
    for lane in LANES:
        folder = tmp_path / lane
        await asyncio.to_thread(folder.mkdir)
        found.append(await ends(lane, rabbit_url, folder))
    wire, faststream = found
    assert len(wire) == len(FAILING) + len(STRAIGHT)
    for number, properties_of_it in wire.items():
        assert properties_of_it == faststream[number], number
    await clean(rabbit_url)
