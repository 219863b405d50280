"""Faults of RabbitMQ: a copy that nobody takes, a process that is gone at the worst moment."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter

import aio_pika
import pytest

from service import KDLQ, KDLQConfig, KDLQError, Message, Result, Status
from tests.kit.broker import channel_to, depth, drain
from tests.servers.waiting import eventually

LETTERS = 20


class Told:
    """A listener."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_kill_error(self, message: Message, error: Exception) -> None:
        """Written down."""
        self.errors.append(str(error))


async def test_a_direct_caller_learns_that_nobody_takes_the_copy(rabbit_url: str) -> None:
    told = Told()
    config = KDLQConfig(servers=rabbit_url, dlq="direct.dlq", listeners=(told,))
    async with channel_to(rabbit_url) as channel, KDLQ(config) as kdlq:
        consumer = kdlq.consumer(lambda _message: Status.ERROR, "direct")
        queue = await channel.declare_queue("direct", durable=True)
        await channel.queue_delete("direct.dlq")
        await channel.default_exchange.publish(aio_pika.Message(b"x"), "direct")
        message = await queue.get()
        with pytest.raises(KDLQError, match=r"no queue takes queue 'direct\.dlq'"):
            await consumer.accept(message)
        assert len(told.errors) == 1
        dlq = await channel.declare_queue("direct.dlq", durable=True)
        assert await consumer.accept(message) is Result.KILLED
        await message.ack()
        assert (await dlq.get()).body == b"x"
        for name in ("direct", "direct.dlq"):
            await channel.queue_delete(name)


async def test_a_crash_after_the_confirmation_costs_one_duplicate(rabbit_url: str) -> None:
    async with channel_to(rabbit_url) as channel:
        for name in ("crash", "crash.dlq"):
            await channel.queue_delete(name)
            await channel.declare_queue(name, durable=True)
        for number in range(LETTERS):
            message = aio_pika.Message(b"x", message_id=str(number), delivery_mode=2)
            await channel.default_exchange.publish(message, "crash")
        doomed = _member(rabbit_url, dies_at=3)
        await asyncio.to_thread(doomed.wait, 20)
        heir = _member(rabbit_url)
        try:

            async def over() -> bool:
                done = await depth(channel, "crash.dlq") >= LETTERS
                return (
                    done and await depth(channel, "crash") == 0
                )  # one of the copies may be a second

            await eventually(over, 20)
        finally:
            heir.terminate()
            heir.wait()
        assert await depth(channel, "crash") == 0
        copies = Counter(letter.message_id for letter in await drain(channel, "crash.dlq"))
        assert copies.keys() == {str(number) for number in range(LETTERS)}
        assert sum(copies.values()) <= LETTERS + 1
        for name in ("crash", "crash.dlq"):
            await channel.queue_delete(name)


def _member(url: str, dies_at: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.flows.kdlq.member", url, "crash", "", str(dies_at)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)
