"""RabbitMQ raises its memory alarm in mid-flow: it reads acknowledgements, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.rabbitmq import Node
from tests.crash.office import before, office
from tests.crash.traffic import ending, traffic
from tests.servers.waiting import eventually

LETTERS = 500
# Shorter than the alarm: whoever took silence for loss would send everything again.
IMPATIENT = {"DLO_RABBIT__PUBLISH_TIMEOUT": "2s"}
ALARM = 30.0 if os.environ.get("DLO_TEST_SLOW") else 5.0  # `just slow`
RESUMES = 5.0
SLOW = 0.8  # between the broker's word that it is free and its confirmations


async def test_a_blocked_broker_is_waited_for(
    rabbit_node: Node, sqlite_url: str, tmp_path: Path
) -> None:
    async with (
        before(rabbit_node.url) as (proxy, through),
        traffic(rabbit_node.url) as letters,
        ending(office(through, sqlite_url, tmp_path, **IMPATIENT)) as service,
    ):
        await letters.send(LETTERS)
        with alarm(rabbit_node):
            await service.start()
            await asyncio.sleep(ALARM)
            assert letters.checker.missing, "the broker took everything in spite of its alarm"
            # Each letter is in one place. One whose acknowledgement was not read would be in two.
            await eventually(lambda: stored(rabbit_node) == letters.checker.missing, within=20)
            proxy.delay(SLOW)
        await letters.moves(upto=1, within=RESUMES)
        proxy.heal()
        report = await letters.ends(service)
        print(report)
        report.demand(most=0)


def stored(node: Node) -> int:
    """All letters in all queues, those in somebody's hands included."""
    lines = node.ctl("list_queues", "--quiet", "--no-table-headers", "messages").split()
    return sum(map(int, lines))


@contextmanager
def alarm(node: Node) -> Iterator[None]:
    """No memory left, for a while."""
    node.ctl("set_vm_memory_high_watermark", "0.00001")
    try:
        yield
    finally:
        node.ctl("set_vm_memory_high_watermark", "absolute", "1GB")
