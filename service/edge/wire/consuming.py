"""Consuming: a link with a consumer for each queue; lost ones come back, stuck ones are found out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import structlog

from service.edge.wire.connection import Connection
from service.edge.wire.consumer import Consumer, Gone, Take
from service.edge.wire.errors import Lost, Refused
from service.edge.wire.link import FAULTS, Link
from service.edge.wire.target import Target

LOOK_AFTER = 1.0
LOOKS_UNTIL_STUCK = 10
"""Looks at which letters wait, none comes and we hold none, before the connection is given up."""


class Consuming:
    """Takes letters out of several queues, for as long as it is open."""

    def __init__(
        self,
        target: Target,
        takes: Mapping[str, Take],
        *,
        prefetch: int,
        pause: float = 2.0,
        gone: Gone = lambda _consumer, _why: None,
    ) -> None:
        self.link = Link(target, pause, self._furnish, self._lost)
        self._takes, self._prefetch, self._gone = takes, prefetch, gone
        self._consumers: dict[str, Consumer] = {}
        self._gaps: dict[str, Exception] = {}
        self._is_stopped = False
        self._idle: dict[str, tuple[int, int]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("dlo.wire")

    @property
    def trouble(self) -> Exception | None:
        """Why letters do not come, from one queue at least; None where they can."""
        return self.link.trouble or next(iter(self._gaps.values()), None)

    async def open(self) -> None:
        """Connect and consume, or raise; from then on stay so."""
        self._is_stopped = False
        await self.link.open()
        if (gap := next(iter(self._gaps.values()), None)) is not None:
            await self.link.close()
            raise gap
        self._looking = asyncio.ensure_future(self._look_after())

    async def stop(self) -> None:
        """Let no more letters come; those that came can still be settled."""
        self._is_stopped = True
        await self._look_away()
        for consumer in tuple(self._consumers.values()):
            with suppress(*FAULTS):
                await consumer.stop()

    async def close(self) -> None:
        """Hang up; what is not settled goes back to its queue."""
        await self._look_away()
        await self.link.close()

    async def _look_away(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None

    async def _furnish(self, connection: Connection) -> None:
        for queue in self._takes:
            if not self._is_stopped:
                await self._start(queue, connection)

    async def _start(self, queue: str, connection: Connection) -> None:
        consumer = Consumer(connection, queue, self._prefetch, self._takes[queue], self._gone)
        try:
            await consumer.start()
        except Refused as fault:  # anything else may have started, unknown to us: begin anew
            self._gap(queue, fault)
        else:
            self._consumers[queue] = consumer
            self._gaps.pop(queue, None)
            self._idle.pop(queue, None)
            if self._is_stopped:  # meanwhile: it must not bring letters any more
                await consumer.stop()

    def _gap(self, queue: str, fault: Exception) -> None:
        is_opening = self._looking is None  # then whoever opens is told
        if queue not in self._gaps and not is_opening:
            self._log.warning("a queue is not consumed", action="gap", queue=queue, why=str(fault))
        self._gaps[queue] = fault

    def _lost(self, _why: Exception) -> None:
        self._consumers.clear()

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AFTER)
            connection = self.link.connection
            if connection is not None and connection.is_open:
                await self._look(connection)

    async def _look(self, connection: Connection) -> None:
        for queue in self._takes:
            if connection.is_paused:
                return  # we do not read: no answer would be heard
            try:
                await self._look_at(queue, connection)
            except TimeoutError:
                if not connection.is_paused:
                    connection.drop(Lost(f"no answer about {queue}"))
            except Exception as fault:  # noqa: BLE001  # whoever looks after the others must not end
                self._gap(queue, fault)

    async def _look_at(self, queue: str, connection: Connection) -> None:
        consumer = self._consumers.get(queue)
        if consumer is None or not consumer.is_open:
            if consumer is not None and consumer.ended is not None:
                self._gap(queue, consumer.ended)
            await self._start(queue, connection)
            if queue not in self._gaps:
                self._log.info("a queue is consumed again", action="gap_closed", queue=queue)
            return
        self._gaps.pop(queue, None)
        if not consumer.in_hand:
            await self._look_for_letters(queue, consumer, connection)

    async def _look_for_letters(
        self, queue: str, consumer: Consumer, connection: Connection
    ) -> None:
        """Letters wait, none of them is in our hands, and none comes: the broker has forgotten us."""
        before, looks = self._idle.get(queue, (0, 0))
        if consumer.received != before:
            self._idle[queue] = consumer.received, 0
            return
        ready, _consumers = await consumer.waiting()
        looks = looks + 1 if ready and consumer.received == before else 0
        self._idle[queue] = before, looks
        if looks >= LOOKS_UNTIL_STUCK:
            connection.drop(Lost(f"{ready} letters wait in {queue} and none is delivered"))
