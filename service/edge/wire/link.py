"""A link: a connection that is opened again whenever it is lost, at first at once, then more patiently."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from service.edge.wire.connection import Connection
from service.edge.wire.handshake import connect
from service.edge.wire.target import Target

SHORTEST_PAUSE = 0.1
FAULTS = (OSError, TimeoutError)


class Link:
    """Keeps one connection; `furnish` opens channels on each new one, `on_lost` hears of each end."""

    def __init__(
        self,
        target: Target,
        pause: float,
        furnish: Callable[[Connection], Awaitable[None]],
        on_lost: Callable[[Exception], None] = lambda _why: None,
    ) -> None:
        self.target, self._longest = target, pause
        self._furnish, self._on_lost = furnish, on_lost
        self._log = structlog.get_logger("dlo.wire").bind(connection=target.name)
        self._keeping: asyncio.Task[None] | None = None
        self.connection: Connection | None = None
        self.opened = 0
        """How often it was opened so far."""
        self.trouble: Exception | None = ConnectionError("not tried yet")
        """Why there is no connection; None where there is one."""

    @property
    def is_open(self) -> bool:
        """Whether the connection stands, with its channels."""
        return self.trouble is None and self.connection is not None and self.connection.is_open

    async def open(self) -> None:
        """Connect now, or raise; from then on stay connected."""
        await self._connect()
        self._keeping = asyncio.ensure_future(self._keep())

    async def close(self) -> None:
        """Say good-bye, and stay away."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
            self._keeping = None
        connection, self.connection = self.connection, None
        self.trouble = self.trouble or ConnectionError("closed by us")
        if connection is not None:
            await connection.close()

    async def _connect(self) -> None:
        connection = await connect(self.target)
        try:
            await self._furnish(connection)
        except BaseException as fault:
            connection.drop(ConnectionError(f"not furnished: {fault!r}"))
            raise
        self.connection, self.trouble = connection, None
        self.opened += 1

    async def _keep(self) -> None:
        while True:
            assert self.connection is not None
            why = await asyncio.shield(self.connection.lost)
            self.trouble = why
            self._on_lost(why)
            self._log.warning("connection lost; opening it again", action="wire_lost", why=str(why))
            await self._again()
            self._log.info("connected again", action="wire_open")

    async def _again(self) -> None:
        pause = SHORTEST_PAUSE
        while True:
            # Not all services of a broker that came back at the same moment.
            await asyncio.sleep(min(pause, self._longest) * random.uniform(0.5, 1.0))
            try:
                return await self._connect()
            except Exception as fault:  # noqa: BLE001  # a lane that never comes back is worse
                self.trouble = fault
                pause *= 2
