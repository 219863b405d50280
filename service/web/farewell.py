"""Hearing that the process shall end before the server waits for its last requests."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], Any]


class Farewell:
    """Tells somebody of SIGINT and SIGTERM, and leaves the rest to whoever handled them before.

    uvicorn finishes every request before it tells an application to shut down: a stream that only
    ends then would keep it waiting for ever.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._before: dict[int, Handler] = {}
        self._ours: dict[int, Handler] = {}

    def listen(self) -> None:
        """Put ourselves before each handler; where there is none nobody waits for requests either."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            before = signal.getsignal(number)
            if not callable(before):
                continue

            def hear(got: int, frame: FrameType | None, before: Handler = before) -> None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._tell)
                before(got, frame)

            with suppress(ValueError):  # not the main thread: then the signals are somebody else's
                signal.signal(number, hear)
                self._before[number], self._ours[number] = before, hear

    def forget(self) -> None:
        """Put back what was there."""
        for number, before in self._before.items():
            if signal.getsignal(number) is self._ours[number]:
                with suppress(ValueError):
                    signal.signal(number, before)
