"""The service's own forward hop, put together exactly as `service.app` does."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import aio_pika
import uvloop

from benchmarks.letters import KEY, preload
from service import logs
from service.composition import create, quiet_collector
from service.core.delivery import Delivery
from service.core.verdict import Verdict
from service.edge.listeners import Listeners
from service.settings import load

QUEUES = ("retry-queue", "queue.delay.1", "retry-queue-1", "dlq-queue")


async def relay(url: str, count: int, folder: Path) -> dict[str, float]:
    """Start the service on a full retry-queue and wait until every letter has its verdict."""
    (folder / "settings.toml").write_text(f'[routes]\n"{KEY}" = 3\n')
    settings = load(
        folder,
        {
            "DLO_RABBIT__URL": url,
            "DLO_DATABASE__URL": f"sqlite+aiosqlite:///{folder}/dlo.db",
            "DLO_MARKS__KEY": "a key for the benchmark, long enough",
            "DLO_DLQ_PROCESSOR__TIERS": '["1h"]',
            "DLO_DLQ_PROCESSOR__DRILL": "false",
            "DLO_LOG__FORMAT": "json",
        },
    )
    logs.configure(settings.log.level, settings.log.format)
    await _prepare(url, count)
    office = create(settings)
    quiet_collector()
    done, left = asyncio.Event(), count
    cpu, began = 0.0, 0.0
    judged = Listeners.judged

    def count_down(self: Listeners, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        nonlocal left, began, cpu
        if not began:
            began, cpu = time.perf_counter(), _cpu()
        judged(self, flow, delivery, verdict)
        left -= 1
        if not left:
            done.set()

    Listeners.judged = count_down  # type: ignore[method-assign]  # the stopwatch
    async with office.start_lifespan_context():
        await done.wait()
        seconds, used = time.perf_counter() - began, _cpu() - cpu
    await _clean(url)
    return {"seconds": seconds, "cpu": used}


async def _prepare(url: str, count: int) -> None:
    await _clean(url)
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        retry = await channel.declare_exchange("retry-exchange", "topic", durable=True)
        queue = await channel.declare_queue(
            "retry-queue", durable=True, arguments={"x-queue-type": "classic"}
        )
        await queue.bind(retry, "retry-routing-key")
    await preload(url, "retry-exchange", "retry-routing-key", "retry-queue", count)


async def _clean(url: str) -> None:
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        for name in QUEUES:
            await channel.queue_delete(name)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(uvloop.run(relay(sys.argv[1], int(sys.argv[2]), Path(folder)))))
