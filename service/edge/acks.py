"""Acknowledgements that leave together: what is settled in one turn of the loop goes in one write."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from aio_pika.abc import AbstractIncomingMessage
from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from pamqp import commands as spec
from pamqp import frame as frames

_tags: WeakKeyDictionary[Channel, list[int]] = WeakKeyDictionary()
_writes: set[asyncio.Task[None]] = set()


async def acknowledge(message: AbstractIncomingMessage) -> None:
    """Tell the broker with the next write that the letter is settled.

    It may hear of it a moment late, never early; and where it does not, because the connection is
    lost first, it gives out a letter again whose copy it has confirmed: a duplicate, no loss.
    """
    channel = message.channel
    if isinstance(channel, Channel) and message.delivery_tag is not None:
        _collect(channel, message.delivery_tag)
    else:
        await message.ack()  # not a broker's own channel: the simulation's


def _collect(channel: Channel, tag: int) -> None:
    tags = _tags.setdefault(channel, [])
    tags.append(tag)
    if len(tags) == 1:
        asyncio.get_running_loop().call_soon(_flush, channel)


def _flush(channel: Channel) -> None:
    tags = _tags.pop(channel, [])
    if channel.is_closed:
        return
    payload = b"".join([frames.marshal(spec.Basic.Ack(tag), channel.number) for tag in tags])
    write = asyncio.ensure_future(
        channel.write_queue.put(ChannelFrame(payload, should_close=False))
    )
    _writes.add(write)
    write.add_done_callback(_writes.discard)
