"""PostgreSQL stops during intake: letters wait in their queue, nothing is lost, the ledger catches up."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from aio_pika.abc import AbstractChannel

from deploy.local.postgres import Server
from tests.intake.reading import ledger
from tests.intake.test_kills import QUEUE, letter, passed, reckon, settings
from tests.kit.broker import channel_to, clean, depth
from tests.kit.process import Service, running
from tests.servers.waiting import eventually

# The real one: DLO_TEST_OUTAGE=60.
OUTAGE = float(os.environ.get("DLO_TEST_OUTAGE") or 5)
BATCH = 200


async def test_the_ledger_catches_up(
    rabbit_url: str, postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url, QUEUE)
    sent = 0
    async with (
        ledger(postgres_url) as book,
        channel_to(rabbit_url) as channel,
        running(Service(settings(rabbit_url, postgres_url), tmp_path), ready=False) as service,
    ):
        await channel.declare_queue(QUEUE, durable=True)
        await eventually(service.is_ready, within=30)
        sent = await send(channel, sent)
        await eventually(lambda: passed(book, 50), within=15)
        postgres.kill()
        try:
            sent = await asyncio.wait_for(keep_sending(channel, sent), OUTAGE + 20)
            await eventually(lambda: says_held(service), within=15)
            waiting = await depth(channel, QUEUE)
            assert waiting > 0, "letters wait in their queue"
        finally:
            postgres.start()
        await eventually(lambda: passed(book, sent), within=40, pause=0.1)
        await eventually(service.is_ready, within=20)
        assert await asyncio.to_thread(service.stop) == 0
        await reckon(book, sent)
        print(f"{sent} letters, {waiting} of them waited through {OUTAGE:g} s")
        await channel.queue_delete(QUEUE)
    assert "Traceback" not in service.said()


async def send(channel: AbstractChannel, first: int) -> int:
    """Some letters more; how many there are now."""
    some = range(first, first + BATCH)
    await asyncio.gather(*(channel.default_exchange.publish(letter(n), QUEUE) for n in some))
    return first + BATCH


async def keep_sending(channel: AbstractChannel, sent: int) -> int:
    """Letters keep dying while the database is away."""
    loop = asyncio.get_running_loop()
    until = loop.time() + OUTAGE
    while loop.time() < until:
        sent = await send(channel, sent)
        await asyncio.sleep(1)
    return sent


def says_held(service: Service) -> bool:
    """`/readyz` says that letters wait, and why."""
    status, parts = service.get("/readyz")
    intake: dict[str, Any] = parts["intake"]
    held = f"letters of {QUEUE} wait in their queue: PostgreSQL"
    return status == 503 and not intake["ok"] and held in intake["says"]
