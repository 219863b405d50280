"""A shutdown is not an attempt: what is in hand is finished, the rest stays in its queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from tests.kit.broker import channel_to, clean, drain
from tests.kit.process import Service, environment, running
from tests.kit.shop import open_shop, reject_all
from tests.servers.waiting import eventually

LETTERS = 200
GRACE = 10.0


@pytest.mark.parametrize("end", [Service.stop, Service.interrupt])
async def test_letters_in_flight_are_neither_lost_nor_doubled(
    rabbit_url: str, sqlite_url: str, tmp_path: Path, end: Callable[[Service], int]
) -> None:
    await clean(rabbit_url)
    given = environment(
        rabbit_url,
        sqlite_url,
        DLO_DLQ_PROCESSOR__TIERS='["10m"]',
        DLO_DLQ_PROCESSOR__PREFETCH="20",
        DLO_ROUTES='{"order.#" = 1}',
        DLO_SHUTDOWN__GRACE=f"{GRACE:g}s",
    )
    async with running(Service(given, tmp_path)) as service, channel_to(rabbit_url) as channel:
        shop = await open_shop(channel)
        publishing = [shop.publish("order.created", message_id=str(n)) for n in range(LETTERS)]
        await asyncio.gather(*publishing)
        await shop.consume(reject_all)
        await eventually(lambda: service.verdicts("retry"), pause=0.001)
        started = monotonic()
        assert await asyncio.to_thread(end, service) == 0
        assert monotonic() - started < GRACE
        await eventually(lambda: len(shop.seen) == LETTERS)
        left = [
            letter.message_id
            for queue in ("retry-queue", "queue.delay.1", "retry-queue-1", "dlq-queue", "orders")
            for letter in await drain(channel, queue)
        ]
        assert sorted(map(str, left)) == sorted(map(str, range(LETTERS)))
        assert "Traceback" not in service.said()


async def test_a_service_that_never_reached_the_broker_ends_at_once(
    sqlite_url: str, tmp_path: Path
) -> None:
    given = environment("amqp://guest:guest@127.0.0.1:1/", sqlite_url)
    async with running(Service(given, tmp_path), ready=False) as service:
        await eventually(lambda: service.lines("rabbitmq_away"), within=15)
        started = monotonic()
        assert await asyncio.to_thread(service.stop) == 0
        assert monotonic() - started < GRACE
        assert "Traceback" not in service.said()
