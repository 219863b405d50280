"""Opening the office: connect, declare, start consuming; again and again until RabbitMQ lets us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from aio_pika.abc import AbstractConnection
from aiormq.exceptions import AMQPError
from faststream.rabbit import RabbitBroker
from faststream.rabbit.subscriber import RabbitSubscriber

from service.edge.declare import NotDeclared, declare
from service.edge.post import RabbitPost
from service.edge.sentences import place, sentence
from service.edge.tap import Tap
from service.edge.wire.lane import WireLane
from service.topology.tables import Topology

LONGEST_PAUSE = 15.0
LOOK_AFTER = 5.0
FAULTS = (AMQPError, NotDeclared, OSError, TimeoutError, RuntimeError, ExceptionGroup)


@dataclass(frozen=True, slots=True)
class Closed:
    """Not consuming, since when and why."""

    since: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Open:
    """Consuming."""


State = Open | Closed


class Opening:
    """The broker's state, and the way to a better one."""

    def __init__(
        self,
        broker: RabbitBroker,
        post: RabbitPost,
        topology: Topology,
        url: str,
        pause: float,
        ready: Callable[[], Awaitable[object]],
    ) -> None:
        self.broker, self.post = broker, post
        self.lane: WireLane | None = None
        # FastStream takes callbacks only when a broker is made, and we are made after it.
        broker._on_close, broker._on_reconnected = (self.lost,), (self.restored,)
        self.topology, self._url, self._pause, self._ready = topology, url, pause, ready
        self._log = structlog.get_logger("dlo.rabbitmq")
        self._mended, self._opened = 0.0, False
        self.gap = ""
        self.state: State = Closed(datetime.now(UTC), f"{place(url)} has not been tried yet")

    async def run(self) -> None:
        """Open; a broker that is away, or refuses, is tried again until it does not."""
        pause = self._pause
        while True:
            try:
                await self._open()
            except Exception as error:  # noqa: BLE001  # a service that serves and never consumes is worse
                self._closed(sentence(error, self._url), again=pause)
                await self._hang_up()
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                self._opened, self.state = True, Open()
                self._log.info("consuming", action="open", rabbitmq=place(self._url))
                return

    @property
    def consumed(self) -> frozenset[str]:
        """The queues we take letters from."""
        subscribers = self.broker.subscribers
        return frozenset(s.queue.name for s in subscribers if isinstance(s, RabbitSubscriber))

    def relay(self, lane: WireLane) -> None:
        """Let the letters of some queues go over the wire: their subscribers document them, and rest."""
        self.lane = lane
        for subscriber in self.broker.subscribers:
            if isinstance(subscriber, RabbitSubscriber) and subscriber.queue.name in lane.queues:
                subscriber.start = _rest  # type: ignore[method-assign]  # FastStream starts them all

    def explain(self, error: Exception) -> str:
        """Why the broker cannot be used, for a person."""
        return sentence(error, self._url)

    async def stop_intake(self, grace: float) -> None:
        """Take no more letters; those in hand are finished. FastStream alone would go on receiving."""
        await asyncio.gather(*map(_cancel, self.broker.subscribers))
        if self.lane is not None:
            await self.lane.stop_intake(grace)

    async def close(self) -> None:
        """Hang up where FastStream does not do it."""
        if self.lane is not None:
            await self.lane.close()
        await self.post.close()

    async def mend(self) -> None:
        """Declare the topology again: somebody took a piece of it away while letters were moving."""
        now = asyncio.get_running_loop().time()
        if now - self._mended < 1.0 or not isinstance(self._connection, AbstractConnection):
            return
        self._mended = now
        try:
            async with asyncio.timeout(5):
                await declare(self.topology, self._connection)
        except asyncio.CancelledError:  # also aio-pika's word for a connection lost meanwhile
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
        except Exception as error:  # noqa: BLE001  # aiormq raises even a bare one; whoever mends goes on
            self.gap = sentence(error, self._url)
            self._log.warning(self.gap, action="not_mended")
        else:
            self.gap = ""

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Tap]:
        """Look at queues, over the connection that stands; OSError where none does."""
        if not isinstance(self._connection, AbstractConnection):
            raise ConnectionError("not connected")
        async with self._connection.channel() as channel:
            yield Tap(channel)

    async def keep_standing(self) -> None:
        """Look after the topology for as long as we run: RabbitMQ drops a letter whose dead-letter
        exchange is gone, and tells nobody."""
        while True:
            await asyncio.sleep(LOOK_AFTER)
            if isinstance(self.state, Open):
                await self.mend()

    def lost(self, _connection: object, error: BaseException | None = None) -> None:
        """The consuming connection is gone; aio-pika brings it back, and calls this at each try."""
        if error is None or isinstance(error, asyncio.CancelledError):
            return
        self._closed(sentence(error, self._url), again=self._pause)

    def restored(self, _connection: object) -> None:
        """It is back, and with it the consumers, where there were any."""
        if not self._opened:
            return
        self.state = Open()
        self._log.info("consuming again", action="open", rabbitmq=place(self._url))

    @property
    def _connection(self) -> object:
        return self.broker._connection

    async def _open(self) -> None:
        await self.broker.connect()
        assert isinstance(self._connection, AbstractConnection)
        await declare(self.topology, self._connection)
        await self.post.open()
        self.state = Closed(
            datetime.now(UTC), f"{place(self._url)} is there; waiting for the first routes"
        )
        await self._ready()
        if self.lane is not None:
            await self.lane.open()
        await self.broker.start()

    async def _hang_up(self) -> None:
        with suppress(*FAULTS):
            await self.broker.stop()
        with suppress(*FAULTS):
            await self.close()

    def _closed(self, why: str, again: float) -> None:
        since = self.state.since if isinstance(self.state, Closed) else datetime.now(UTC)
        self.state = Closed(since, why)
        self._log.warning(f"{why}; trying again in {again:g} s", action="rabbitmq_away")


async def _rest() -> None:
    """A subscriber whose queue is consumed over the wire."""


async def _cancel(subscriber: object) -> None:
    assert isinstance(subscriber, RabbitSubscriber)
    queue, tag = subscriber._queue_obj, subscriber._consumer_tag
    if queue is not None and tag is not None and not queue.channel.is_closed:
        with suppress(*FAULTS):
            await queue.cancel(tag, timeout=2)
        subscriber._consumer_tag = None
