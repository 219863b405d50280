"""A connection: one socket, its channels, its heart; everything written in one turn leaves in one write."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import cast

from pamqp import commands

from service.edge.wire import frames
from service.edge.wire.channel import Channel
from service.edge.wire.errors import Lost
from service.edge.wire.target import Target

MOST_IN_HAND = 32 * 1024 * 1024
"""Bytes of letters in our hands at which we read no further until some of them are done."""
BEATS_MISSED = 2.5
MOST_CHANNELS = 2047
"""As many as RabbitMQ allows by default: past them the connection is opened anew."""
MUCH = 160
"""Pieces of frames: about twenty letters."""
WRITE_AT_ONCE = 8 * 1024
"""Bytes of one write past which uvloop does not wait for the end of the turn either."""


class Connection(asyncio.Protocol):
    """Tells its channels what arrives; `lost` ends, with the reason, when it is over."""

    def __init__(self, target: Target) -> None:
        self.target, self.loop = target, asyncio.get_running_loop()
        self.lost: asyncio.Future[Exception] = self.loop.create_future()
        self.channels: dict[int, Channel] = {}
        self._numbers = itertools.count(1)
        self.room = target.frame_max - frames.SMALLEST
        self.blocked = ""
        """Why the broker takes nothing from us for now; empty while it does."""
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._out: list[bytes] = []
        self._weight, self.is_paused = 0, False
        self._heard = self._said = self.loop.time()
        self._beat: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether the socket stands."""
        return self._transport is not None and not self.lost.done()

    def number(self) -> int:
        """A channel number that nobody had before: a closed channel's may still be in use."""
        number = next(self._numbers)
        if number > MOST_CHANNELS:
            self.drop(Lost("no channel number is left"))
            raise Lost("no channel number is left")
        return number

    def send(self, *pieces: bytes) -> None:
        """Hand frames over; what is ready in this turn of the loop leaves together, or as soon as it
        is much: the broker has work then while we go on."""
        if not self._out:
            self.loop.call_soon(self.flush)
        self._out += pieces
        if len(self._out) > MUCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        out, self._out = self._out, []
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(out))
            self._said = self.loop.time()

    def weigh(self, more: int) -> None:
        """So many bytes more, or less, of letters are in our hands."""
        self._weight += more
        if self._transport is None or self._transport.is_closing():
            return
        if not self.is_paused and self._weight > MOST_IN_HAND:
            self.is_paused = True
            self._transport.pause_reading()
        elif self.is_paused and self._weight <= MOST_IN_HAND // 2:
            self.is_paused = False
            self._heard = self.loop.time()
            self._transport.resume_reading()

    def block(self, why: str) -> None:
        """The broker takes nothing from us for now, and why; or it does again (empty)."""
        self.blocked = why

    def beat_every(self, seconds: int) -> None:
        """Make sure of each other from now on; 0 is never."""
        if seconds:
            self._beat = self.loop.call_later(seconds / 2, self._pulse, seconds)

    async def close(self) -> None:
        """Say good-bye, and hang up."""
        if self.is_open:
            self.send(frames.write(commands.Connection.Close(200, "done", 0, 0), 0))
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await asyncio.shield(self.lost)
        self.drop(Lost("closed by us"))

    def drop(self, why: Exception, *, politely: bool = False) -> None:
        """Hang up at once, or when what was said is out; whoever waits is told why."""
        if self._beat is not None:
            self._beat.cancel()
        if not self.lost.done():
            self.lost.set_result(why)
        for channel in tuple(self.channels.values()):
            channel.end(why)
        if self._transport is None:
            return
        if politely:
            self.flush()
            self._transport.close()
        else:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's only behaves like one
        self._transport.set_write_buffer_limits(high=WRITE_AT_ONCE)

    def data_received(self, data: bytes) -> None:
        """Bytes arrived."""
        self._heard = self.loop.time()
        data = self._rest + data if self._rest else data
        done = 0
        try:
            for kind, number, payload, stop in frames.split(data):
                done = stop
                channel = self.channels.get(number)
                if channel is not None:
                    channel.hear(kind, payload)
        except Exception as broken:  # noqa: BLE001  # not AMQP, or a bug of ours: begin anew
            self.drop(broken if isinstance(broken, frames.Broken) else Lost(repr(broken)))
        self._rest = data[done:] if done else data

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        why = Lost(str(exc) or type(exc).__name__) if exc else Lost("the broker hung up")
        self.drop(why)

    def _pulse(self, seconds: int) -> None:
        now = self.loop.time()
        if not self.is_paused and now - self._heard > seconds * BEATS_MISSED:
            self.drop(Lost(f"nothing heard for {now - self._heard:.0f} s"))
            return
        if now - self._said >= seconds / 2 - 0.1:
            self.send(frames.PULSE)
        self._beat = self.loop.call_later(seconds / 2, self._pulse, seconds)
