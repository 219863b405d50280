"""An intake: letters out of one queue, in batches, each settled at one stroke."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from service.edge.wire.consuming import Consuming
from service.edge.wire.delivered import Delivered
from service.edge.wire.target import Target


@dataclass(frozen=True, slots=True)
class Batch:
    """Letters that came one after the other over one channel, the oldest first; never empty."""

    letters: tuple[Delivered, ...]

    def acknowledge(self) -> bool:
        """Settle them all, and those of earlier batches. False where the connection is gone: then the
        broker gives them out again, and what was done with them will be done a second time."""
        last = self.letters[-1]
        return last.consumer.acknowledge(last.tag, upto=True)

    def give_back(self) -> bool:
        """Back into the queue, each for itself: the broker gives them out again."""
        return all(each.consumer.reject(each.tag, requeue=True) for each in self.letters)


class Intake:
    """Stays connected to a broker and takes letters out of a queue, at most `prefetch` at a time.

    The letters in our hands are bounded in bytes as well: past that the broker has to wait.
    """

    def __init__(self, url: str, queue: str, *, prefetch: int = 500, pause: float = 2.0) -> None:
        self._letters: deque[Delivered] = deque()
        self._came = asyncio.Event()
        takes = {queue: self._take}
        self._consuming = Consuming(Target.of(url), takes, prefetch=prefetch, pause=pause)

    @property
    def trouble(self) -> Exception | None:
        """Why no letters come; None where they can."""
        return self._consuming.trouble

    async def open(self) -> None:
        """Connect and consume, or raise; from then on stay so."""
        await self._consuming.open()

    async def stop(self) -> None:
        """Let no more letters come; those taken can still be settled."""
        await self._consuming.stop()

    async def close(self) -> None:
        """Hang up; what is not settled goes back to its queue."""
        await self._consuming.close()

    async def take(self, most: int, within: float = 0.0) -> Batch:
        """Wait for letters, and then so many seconds more for the batch to fill."""
        loop = asyncio.get_running_loop()
        await self._arrival(None)
        until = loop.time() + within
        while len(self._letters) < most and (left := until - loop.time()) > 0:
            if not await self._arrival(left):
                break
        batch = self._batch(most)
        return batch if batch is not None else await self.take(most, within)

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    def _take(self, delivered: Delivered) -> None:
        self._letters.append(delivered)
        self._came.set()

    async def _arrival(self, within: float | None) -> bool:
        """Wait until a letter more has come; at once where some wait and no time is given."""
        if within is None and self._letters:
            return True
        self._came.clear()
        try:
            async with asyncio.timeout(within):
                await self._came.wait()
        except TimeoutError:
            return False
        return True

    def _batch(self, most: int) -> Batch | None:
        """The oldest letters of one channel that still stands; what a lost one brought is forgotten."""
        while self._letters and not self._letters[0].consumer.is_open:
            self._letters.popleft()
        taken: list[Delivered] = []
        while self._letters and len(taken) < most:
            if taken and self._letters[0].consumer is not taken[0].consumer:
                break
            taken.append(self._letters.popleft())
        return Batch(tuple(taken)) if taken else None
