"""Who listens for changes, and what they are told: one look at the ledger a second for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime

import structlog

from service.ledger.away import LedgerAway
from service.ledger.figures import Pulse
from service.web.health import Check

Told = Mapping[str, object]
LAST_LOOK = 5.0


class Listener:
    """What one client has not been told yet: the newest of each kind, so it never grows."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._pending: dict[str, Told] = {}

    def tell(self, kind: str, told: Told) -> None:
        """Replace what is still pending of this kind."""
        self._pending[kind] = told
        self.news.set()

    def take(self) -> dict[str, Told]:
        """Everything pending."""
        self.news.clear()
        taken, self._pending = self._pending, {}
        return taken


class Streams:
    """All listeners. The ledger is only looked at while there is one."""

    def __init__(
        self,
        look: Callable[[], Awaitable[Pulse]],
        checks: Mapping[str, Check],
        *,
        every: float = 1.0,
        heartbeat: float = 15.0,
        most: int = 64,
    ) -> None:
        self._look, self._checks, self._every = look, checks, every
        self._heartbeat, self._most = heartbeat, most
        self._listeners: set[Listener] = set()
        self._known: dict[str, Told] = {}
        self._watch: asyncio.Task[None] | None = None
        self._closed = False
        self._alone = asyncio.Event()
        self._bug = ""
        self._log = structlog.get_logger("dlo.web")

    @property
    def is_full(self) -> bool:
        """Whether no more can listen."""
        return self._closed or len(self._listeners) >= self._most

    def seat(self) -> Listener | None:
        """A listener who has a place from now on, until it is left; None where no more can listen."""
        if self.is_full:
            return None
        listener = Listener()
        self._listeners.add(listener)
        self._alone.clear()
        for kind, told in self._known.items():
            listener.tell(kind, told)
        if self._watch is None:
            self._watch = asyncio.create_task(self._watching())
        return listener

    def leave(self, listener: Listener) -> None:
        """Listen no more."""
        self._listeners.discard(listener)
        if not self._listeners:
            self._alone.set()

    async def listen(self, listener: Listener) -> AsyncIterator[tuple[str, Told] | None]:
        """What changes, as it changes, beginning with how things are; None when nothing has for long."""
        while not self._closed:
            if not await self._heard(listener):
                yield None
            for kind, told in listener.take().items():
                yield kind, told

    def close(self) -> None:
        """Every stream ends now: a server that stops waits for its requests."""
        self._closed = True
        self._alone.set()
        for listener in self._listeners:
            listener.news.set()

    async def end(self) -> None:
        """Close, and wait until nobody looks at the ledger any more."""
        self.close()
        await self.idle()

    async def idle(self) -> None:
        """Wait until the look that is under way, if any, is over."""
        if self._watch is not None:
            await asyncio.wait([self._watch], timeout=LAST_LOOK)

    async def _heard(self, listener: Listener) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._heartbeat):
                return await listener.news.wait()
        return False

    async def _watching(self) -> None:
        """Until nobody listens; a look that has begun is finished, so that its connection is whole."""
        try:
            while self._listeners and not self._closed:
                self._tell(await self._seen())
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._every):
                        await self._alone.wait()
        finally:
            self._watch, self._known = None, {}

    def _tell(self, seen: Mapping[str, Told]) -> None:
        for kind, now in seen.items():
            if self._known.get(kind) != now:
                self._known[kind] = now
                for listener in self._listeners:
                    listener.tell(kind, now)

    async def _seen(self) -> dict[str, Told]:
        try:
            seen = await self._looked()
        except Exception as bug:  # noqa: BLE001  # the next look may go well, and somebody waits for it
            if self._bug != (why := type(bug).__name__):
                self._log.error("changes could not be looked for", action="unseen", why=why)
            self._bug = why
            return {}
        self._bug = ""
        return seen

    async def _looked(self) -> dict[str, Told]:
        health: Told = {name: check().ok for name, check in self._checks.items()}
        try:
            return {"health": health, **events_of(await self._look())}
        except LedgerAway:
            return {"health": {**health, "database": False}}


def events_of(pulse: Pulse) -> dict[str, Told]:
    """Counts and ids only: whoever wants more asks for it."""
    changed, seen = pulse.causes
    letters = {state.value: many for state, many in pulse.letters.items()}
    replays = [{"id": one.id, "state": one.state.value} for one in pulse.replays]
    return {
        "letters": {**letters, "newest": pulse.newest},
        "causes": {"changed_at": _said(changed), "last_seen": _said(seen)},
        "replays": {"running": replays},
    }


def _said(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
