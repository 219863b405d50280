"""The service's own intake: a full queue of dead letters into the ledger."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time

import uvloop

from benchmarks.dead_letters import QUEUE, SEAL, preload
from service import logs
from service.composition import quiet_collector
from service.ledger.book import Book
from service.ledger.filing import Filed
from service.office.inquest import Inquest, Source
from service.office.intake_desk import Desk, writers
from service.office.taker import Taker


class Stopwatch:
    """Runs from the first batch that is taken to the last one that is filed."""

    def __init__(self, count: int) -> None:
        self._left, self.done = count, asyncio.Event()

    def filed(self, flow: str, filed: Filed) -> None:
        """Count down."""
        self._left -= filed.new
        if self._left <= 0:
            self.done.set()


async def take_in(url: str, database: str, count: int) -> dict[str, float]:
    """Start a taker on a full queue and wait until every letter is filed."""
    logs.configure("warning", "json")
    await preload(url, count)
    book, watch = Book(database), Stopwatch(count)
    async with book.reading():
        pass  # both sides of the comparison are connected before the clock runs
    desk = Desk(url, book, Inquest(SEAL), watch, writing=writers(book))
    taker = Taker(desk, Source(QUEUE, "dlq_processor"))
    quiet_collector()
    began, cpu = time.perf_counter(), _cpu()
    taker.start()
    await watch.done.wait()
    seconds, used = time.perf_counter() - began, _cpu() - cpu
    await taker.stop()
    await book.close()
    return {"seconds": seconds, "cpu": used}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(uvloop.run(take_in(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
