"""Letters that move through the service for the time of a test, each followed to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import aio_pika
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import AMQPError
from faststream.rabbit import QueueType

from service.edge.declare import declare
from service.flows.dlq_processor.topology import tables
from tests.crash.checker import Checker, Report
from tests.kit.broker import channel_to, clean, depth, drain
from tests.kit.process import Service
from tests.kit.shop import Shop, open_shop
from tests.servers.waiting import eventually

TIERS = tuple(timedelta(milliseconds=wait) for wait in (100, 150, 200))  # as tests/kit sets them
ON_THE_WAY = (
    *("orders", "retry-queue"),
    *(f"queue.delay.{n}" for n in range(1, len(TIERS) + 1)),
    *(f"retry-queue-{n}" for n in range(1, len(TIERS) + 1)),
)
HOPELESS = 10  # one letter of so many is never accepted
# Seconds without any movement after which nothing more is expected.
QUIET, AFTER_THE_LAST = 5.0, 1.0


@dataclass
class Traffic:
    """A foreign team's letters: its consumer rejects each at first and accepts the retry of most."""

    publishing: AbstractChannel
    shop: Shop
    checker: Checker = field(default_factory=Checker)
    number: int = 0
    returned: int = 0

    @property
    def moved(self) -> int:
        """Signs of work by the service: retries that came back and letters that were buried."""
        return self.returned + self.checker.dead.total()

    async def send(self, count: int, key: str = "order.created") -> None:
        """Publish letters, all at once; the checker holds those that the broker confirmed."""
        first, self.number = self.number, self.number + count
        await asyncio.gather(*(self._send(number, key) for number in range(first, self.number)))

    async def moves(self, upto: int, within: float = 20) -> None:
        """Wait until the service has moved so many letters."""

        def enough() -> bool:
            assert self.moved >= upto, f"{self.moved} of {upto} moved within {within} s"
            return True

        await eventually(enough, within=within, pause=0.002)

    async def passes(self, count: int, within: float) -> float:
        """Send letters and wait until one of them has been retried; how long that took."""
        loop, first = asyncio.get_running_loop(), self.number
        start = loop.time()
        await self.send(count)
        fresh = {name(number) for number in range(first, self.number)}
        await eventually(lambda: fresh & self.checker.handled.keys(), within=within)
        return loop.time() - start

    async def ends(self, service: Service, within: float = 60) -> Report:
        """Wait until every letter has ended, or nothing moves any more; then reckon."""
        await self._over(within)
        # What it holds in its hands is finished, or goes back where it can be found.
        # In a thread: a proxy may have to carry its good-bye meanwhile.
        assert await asyncio.to_thread(service.stop) == 0, service.said()[-2000:]
        for queue in ON_THE_WAY:
            self.checker.left.update(
                letter.body.decode() for letter in await drain(self.publishing, queue)
            )
        return self.checker.report()

    async def watch(self) -> None:
        """The team's consumer, and a person who takes every letter out of dlq-queue."""
        await self.shop.consume(self._accepts)
        dead = await self.shop.channel.get_queue("dlq-queue")
        await dead.consume(self._found_dead)

    async def _send(self, number: int, key: str) -> None:
        letter = name(number)
        # Some teams name their letters, some leave that to us.
        message_id = letter if number % 2 else None
        message = Message(
            letter.encode(), message_id=message_id, delivery_mode=DeliveryMode.PERSISTENT
        )
        self.checker.sent.add(letter)
        try:
            exchange = await self.publishing.get_exchange("shop", ensure=False)
            await exchange.publish(message, key)
        except (AMQPError, OSError):
            return
        self.checker.confirmed.add(letter)

    def _accepts(self, message: AbstractIncomingMessage) -> bool:
        """Reject the first delivery; afterwards accept, but for the hopeless ones."""
        letter = message.body.decode()
        if "x-retry-count" not in message.headers:
            return False
        self.returned += 1
        if int(letter) % HOPELESS == 0:
            return False
        self.checker.handled[letter] += 1
        return True

    async def _found_dead(self, message: AbstractIncomingMessage) -> None:
        self.checker.dead[message.body.decode()] += 1
        await message.ack()

    async def _over(self, within: float) -> None:
        """Long enough without a movement; letters that are missing still may take longer."""
        async with asyncio.timeout(within):
            while not await self._is_quiet(QUIET if self.checker.missing else AFTER_THE_LAST):
                pass

    async def _is_quiet(self, seconds: float) -> bool:
        """Whether nothing moves for a while, and no queue holds anything."""
        before, loop = self.moved, asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            await asyncio.sleep(0.1)
            if self.moved != before or await self._waiting():
                return False
        return True

    async def _waiting(self) -> int:
        return sum([await depth(self.publishing, queue) for queue in ON_THE_WAY])


def name(number: int) -> str:
    """The body of a letter, by which it is followed."""
    return f"{number:05}"


@asynccontextmanager
async def traffic(rabbit_url: str) -> AsyncIterator[Traffic]:
    """The office's queues and the team's on a clean broker; the connections never share its fate."""
    await clean(rabbit_url)
    await furnish(rabbit_url)
    async with channel_to(rabbit_url) as publishing, channel_to(rabbit_url) as consuming:
        letters = Traffic(publishing, await open_shop(consuming))
        await letters.watch()
        yield letters
    await clean(rabbit_url)


async def furnish(rabbit_url: str) -> None:
    """What `dlo topology declare` does: rejected letters have somewhere to wait for the service."""
    async with await aio_pika.connect(rabbit_url) as connection:
        await declare(tables(TIERS, QueueType.CLASSIC, drill=False), connection)


@asynccontextmanager
async def ending(service: Service) -> AsyncIterator[Service]:
    """The service, not started yet; ended in any case."""
    try:
        yield service
    finally:
        service.kill()
