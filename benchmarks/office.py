"""The service's own forward hop, put together exactly as `service.app` does.

`python -m benchmarks.office <url> <letters> <lane> [size] [routes] [waiting] [keys]`: moves so many
letters, of so many that wait (by default no more than that), with the keys of so many routes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import aio_pika
import uvloop

from benchmarks.letters import KEY, KIB, cpu, preload
from service import logs
from service.composition import create, quiet_collector
from service.core.delivery import Delivery
from service.core.verdict import Verdict
from service.edge.listeners import Listeners
from service.settings import Settings, load

QUEUES = ("retry-queue", "queue.delay.1", "retry-queue-1", "dlq-queue")


async def relay(
    url: str,
    count: int,
    lane: str,
    folder: Path,
    *,
    size: int = KIB,
    routes: int = 1,
    waiting: int = 0,
    keys: int = 1,
) -> dict[str, float]:
    """Start the service on a full retry-queue and wait until every letter has its verdict."""
    settings = _settings(url, lane, folder, routes)
    logs.configure(settings.log.level, settings.log.format)
    await _prepare(url, max(count, waiting), size, _names(keys))
    office = create(settings)
    quiet_collector()
    done, left = asyncio.Event(), count
    used, began = 0.0, 0.0
    figures: dict[str, float] = {}
    judged = Listeners.judged

    def count_down(self: Listeners, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        nonlocal left, began, used
        if not began:
            began, used = time.perf_counter(), cpu()
        judged(self, flow, delivery, verdict)
        left -= 1
        if not left:
            figures.update(seconds=time.perf_counter() - began, cpu=cpu() - used)
            done.set()

    Listeners.judged = count_down  # type: ignore[method-assign]  # the stopwatch
    async with office.start_lifespan_context():
        await done.wait()
    await _clean(url)
    return figures


def _settings(url: str, lane: str, folder: Path, routes: int) -> Settings:
    rows = "".join(f'"{name}" = 3\n' for name in _names(routes))
    (folder / "settings.toml").write_text(f"[routes]\n{rows}")
    given = {
        "DLO_FLOWS": '["dlq_processor"]',
        "DLO_RABBIT__URL": url,
        "DLO_DATABASE__URL": f"sqlite+aiosqlite:///{folder}/dlo.db",
        "DLO_MARKS__KEY": "a key for the benchmark, long enough",
        "DLO_DLQ_PROCESSOR__TIERS": '["1h"]',
        "DLO_DLQ_PROCESSOR__DRILL": "false",
        "DLO_DLQ_PROCESSOR__LANE": lane,
        "DLO_LOG__FORMAT": "json",
    }
    return load(folder, given)


def _names(count: int) -> list[str]:
    return [KEY, *(f"team{n}.event{n}.created" for n in range(1, count))]


async def _prepare(url: str, count: int, size: int, keys: list[str]) -> None:
    await _clean(url)
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        retry = await channel.declare_exchange("retry-exchange", "topic", durable=True)
        queue = await channel.declare_queue(
            "retry-queue", durable=True, arguments={"x-queue-type": "classic"}
        )
        await queue.bind(retry, "retry-routing-key")
    await preload(url, "retry-exchange", "retry-routing-key", "retry-queue", count, size, keys)


async def _clean(url: str) -> None:
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        for name in QUEUES:
            await channel.queue_delete(name)


def main(url: str, count: str, lane: str = "wire", *more: str) -> None:
    """Print the figures as JSON."""
    numbers = dict(zip(("size", "routes", "waiting", "keys"), map(int, more), strict=False))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(uvloop.run(relay(url, int(count), lane, Path(folder), **numbers))))


if __name__ == "__main__":
    main(*sys.argv[1:])
