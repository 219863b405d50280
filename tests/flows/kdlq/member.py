"""A consumer in a process of its own: every message is an error and goes to the DLQ.

`python -m tests.flows.kdlq.member ADDRESS SOURCE GROUP 3`: at the third copy it is gone, as by a `kill -9`,
after the broker has confirmed the copy and before the message is settled; 0 is never.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from faststream.confluent import KafkaBroker
from faststream.rabbit import RabbitBroker

from service import KDLQ, KDLQConfig, Message, Status


class Fuse:
    """Told when a copy is confirmed; at its end the process is gone."""

    def __init__(self, copies: int) -> None:
        self._copies = copies

    def on_kill_success(self, message: Message) -> None:
        """One more copy."""
        self._copies -= 1
        if self._copies == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(address: str, topic: str, group: str, copies: str) -> None:
    """Until it is ended."""
    fuse = Fuse(int(copies))
    config = KDLQConfig(servers=address, dlq=f"{topic}.dlq", listeners=(fuse,))
    kdlq, options = KDLQ(config), PROMPT if not config.is_rabbitmq else {"prefetch": 1}
    broker = (RabbitBroker if config.is_rabbitmq else KafkaBroker)(address, logger=None)
    if not config.is_rabbitmq:
        options = {**options, "group": group}

    @kdlq.subscriber(broker, topic, **options)
    async def handle(message: Message) -> Status:
        return Status.ERROR

    async with kdlq:
        await broker.start()
        await asyncio.Event().wait()


def assigned(_consumer: object, places: list[object]) -> None:
    """Tell whoever started us that the group has let us in."""
    print(f"assigned {len(places)}", flush=True)


PROMPT: dict[str, Any] = {
    "fetch_max_wait_ms": 20,
    "session_timeout_ms": 2000,
    "heartbeat_interval_ms": 300,
    "on_assign": assigned,
}


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
