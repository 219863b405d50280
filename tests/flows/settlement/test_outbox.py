"""Two relays and a broker that makes them wait: a letter is sent by one of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from service.core.plan import Send
from service.edge.letter import Letter
from service.flows.desk import utc_now
from service.flows.settlement.outbox import Relay
from service.ledger.book import Book
from service.ledger.outbox import Outgoing, put
from service.ledger.schema import upgrade
from tests.servers.waiting import eventually

LEASE = timedelta(seconds=1)


class BlockedPost:
    """A post whose broker is under an alarm: it confirms when the alarm is over."""

    def __init__(self) -> None:
        self.sends = 0
        self.over = asyncio.Event()

    async def send(self, letter: Letter, send: Send) -> None:
        """Wait for the broker."""
        self.sends += 1
        await self.over.wait()


async def _mend() -> None:
    """Nothing is missing."""


async def test_a_letter_that_waits_longer_than_the_lease_is_not_taken_by_another(
    database_url: str,
) -> None:
    await upgrade(database_url)
    book, post = Book(database_url), BlockedPost()
    async with book.writing() as connection:
        await put(connection, Outgoing("letter", "transaction.created", "", b"{}"), utc_now())
    first, second = (Relay(book, lease=LEASE, poll=LEASE) for _ in range(2))
    sending = asyncio.ensure_future(first.deliver(post, _mend))
    await eventually(lambda: post.sends == 1)
    deadline = asyncio.get_running_loop().time() + 2.5 * LEASE.total_seconds()
    while asyncio.get_running_loop().time() < deadline:
        async with asyncio.timeout(10):
            assert await second.deliver(post, _mend) == 0
        await asyncio.sleep(0.05)
    post.over.set()
    assert await sending == 1
    assert await second.deliver(post, _mend) == 0
    assert post.sends == 1
    await book.close()
