"""The handshake: who we are, what we can, how large frames are and how often hearts beat."""

from __future__ import annotations

import asyncio
import platform
from dataclasses import replace
from importlib.metadata import version

from pamqp import commands
from pamqp.base import Frame
from pamqp.common import FieldTable
from pamqp.header import ProtocolHeader

from service.edge.wire import frames
from service.edge.wire.channel import Channel
from service.edge.wire.connection import Connection
from service.edge.wire.errors import NO_ACCESS, Lost, Refused
from service.edge.wire.target import LARGEST_FRAME, Target

CAPABILITIES: FieldTable = {
    "authentication_failure_close": True,
    "basic.nack": True,
    "connection.blocked": True,
    "consumer_cancel_notify": True,
    "publisher_confirms": True,
}
MOST_CHANNELS = 2047


async def connect(target: Target) -> Connection:
    """A connection that is ready for channels; Refused, Lost, OSError or TimeoutError otherwise."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(target.timeout):
        tls = await asyncio.to_thread(target.tls.context) if target.tls else None
        _, connection = await loop.create_connection(
            lambda: Connection(target), target.host, target.port, ssl=tls
        )
        try:
            await _greet(connection)
        except BaseException:
            connection.drop(Lost("the greeting failed"))
            raise
    return connection


class Reception(Channel):
    """Channel 0: the connection's own business."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, 0)
        self._said: asyncio.Queue[Frame | Exception] = asyncio.Queue()

    async def next(self) -> Frame:
        """What the broker says next, while it greets."""
        said = await self._said.get()
        if isinstance(said, Exception):
            raise said
        return said

    def on_method(self, method: Frame) -> None:
        """A step of the greeting, an alarm, or the end."""
        match method:
            case commands.Connection.Blocked():
                self.connection.block(method.reason or "no reason given")
            case commands.Connection.Unblocked():
                self.connection.block("")
            case commands.Connection.Close():
                self.connection.send(frames.write(commands.Connection.CloseOk(), 0))
                why = Refused(method.reply_code or 0, method.reply_text or "")
                self.connection.drop(why, politely=True)
            case commands.Connection.CloseOk():
                self.connection.drop(Lost("closed by us"))
            case _:
                self._said.put_nowait(method)

    def on_end(self, why: Exception) -> None:
        """Whoever waits for a greeting waits in vain."""
        self._said.put_nowait(why)


async def _greet(connection: Connection) -> None:
    reception, target = Reception(connection), connection.target
    connection.send(ProtocolHeader().marshal())
    start = await reception.next()
    assert isinstance(start, commands.Connection.Start)  # AMQP: the first word is the broker's
    if target.mechanism not in (start.mechanisms or "").split():
        raise Refused(NO_ACCESS, f"the broker does not know auth={target.mechanism.lower()}")
    us = commands.Connection.StartOk(_who(target), target.mechanism, target.secret, "en_US")
    connection.send(frames.write(us, 0))
    tune = await reception.next()
    assert isinstance(tune, commands.Connection.Tune)
    agreed = _agree(tune, target)
    connection.target, connection.room = agreed, agreed.frame_max - frames.SMALLEST
    channels = min(tune.channel_max or MOST_CHANNELS, MOST_CHANNELS)
    tuned = commands.Connection.TuneOk(channels, agreed.frame_max, agreed.heartbeat)
    connection.send(frames.write(tuned, 0))
    await reception.ask(commands.Connection.Open(target.vhost))
    connection.beat_every(agreed.heartbeat)


def _who(target: Target) -> FieldTable:
    name: FieldTable = {"connection_name": target.name} if target.name else {}
    return {
        "product": "Dead Letter Office",
        "version": version("dead-letter-office"),
        "platform": f"Python {platform.python_version()}",
        "capabilities": CAPABILITIES,
        **name,
    }


def _agree(tune: commands.Connection.Tune, target: Target) -> Target:
    """The smaller of both wishes; 0 is the broker's word for no limit."""
    frame_max = min(tune.frame_max or LARGEST_FRAME, target.frame_max or LARGEST_FRAME)
    beats = min(filter(None, (tune.heartbeat, target.heartbeat)), default=0)
    return replace(target, frame_max=frame_max, heartbeat=beats if target.heartbeat else 0)
