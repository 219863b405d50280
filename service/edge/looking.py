"""A look at some queues on a connection of its own, in bounded time: passive, nothing is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import aio_pika
from aio_pika.abc import AbstractConnection
from aiormq.exceptions import AMQPError, ChannelLockedResource, ChannelNotFoundEntity
from yarl import URL

from service.core.standing import Absent, Sight, Standing, Unseen
from service.edge.sentences import sentence

MOST = 100
SECONDS = 2.0


async def look_at(url: str, queues: Iterable[str]) -> dict[str, Sight]:
    """How each of these queues stands; whatever is away or slow, there is an answer for each."""
    names = tuple(queues)
    seen: dict[str, Sight] = {}
    why = f"only {MOST} queues are looked at"
    try:
        async with asyncio.timeout(SECONDS):
            named = str(URL(url).update_query(name="dead-letter-office look"))
            async with await aio_pika.connect(named, timeout=SECONDS) as connection:
                for name in names[:MOST]:
                    seen[name] = await _look(connection, name)
    except (AMQPError, OSError, TimeoutError, RuntimeError) as fault:
        why = f"RabbitMQ is away: {sentence(fault, url)}"
    return {name: seen.get(name, Unseen(why)) for name in names}


async def _look(connection: AbstractConnection, name: str) -> Sight:
    """On a channel of its own: the broker closes it over a queue that is not there."""
    channel = await connection.channel(publisher_confirms=False)
    try:
        declared = await channel.declare_queue(name, passive=True)
    except ChannelNotFoundEntity:
        return Absent()
    except ChannelLockedResource:
        return Unseen("it is somebody's own (exclusive)")
    except (AMQPError, ValueError) as refusal:  # the second: a name that no queue can have
        return Unseen(str(refusal)[:200])
    found = declared.declaration_result
    await channel.close()
    return Standing(found.message_count or 0, found.consumer_count or 0)
