"""The watch: people are told once of every cause that is new or came again, and then left in peace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, assert_never

import structlog

from service.core.alerting import Alarm, Hold, Patience, TellEach, TellTogether, telling
from service.ledger import alarms
from service.ledger.book import Book

LEASE = timedelta(minutes=1)
LONGEST_PAUSE = 60.0


class NotTold(Exception):
    """A channel did not take the message; the text names the channel and why, never its address."""


class Channel(Protocol):
    """A way to tell people: a webhook, Apprise's services."""

    async def tell(self, alarms: Sequence[Alarm], at: datetime) -> None:
        """One message about these causes; NotTold where it did not arrive."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at the causes every so often; the log always hears of them, channels where there are any."""

    book: Book
    channels: tuple[Channel, ...] = ()
    patience: Patience = field(default_factory=Patience)
    every: timedelta = timedelta(seconds=2)
    clock: Callable[[], datetime] = _now
    log: Any = field(default_factory=lambda: structlog.get_logger("dlo.watch"))

    async def run(self) -> None:
        """Until cancelled, whatever is away meanwhile."""
        rest = self.every.total_seconds()
        pause = rest
        while True:
            try:
                await self.look()
                pause = rest
            except Exception as fault:  # noqa: BLE001  # a watch that ends silently is worse
                pause = min(pause * 2, LONGEST_PAUSE)
                self._miss(fault, pause)
            await asyncio.sleep(pause)

    async def look(self) -> None:
        """Tell what is due."""
        now = self.clock()
        await alarms.end_mutes(self.book, now)
        due = await alarms.due(self.book, now)
        if not due:
            return
        told = await alarms.told_since(self.book, now - self.patience.window)
        match telling(due, told, now, self.patience):
            case TellEach(each):
                for alarm in each:
                    await self._tell((alarm,))
            case TellTogether(all_of_them):
                await self._tell(all_of_them)
            case Hold():
                return
            case never:
                assert_never(never)

    async def _tell(self, wanted: tuple[Alarm, ...]) -> None:
        """Claim, tell, mark: two processes do not tell the same, and what failed is told later."""
        now = self.clock()
        ours = await alarms.claim(self.book, (a.cause for a in wanted), now, now + LEASE)
        about = tuple(alarm for alarm in wanted if alarm.cause in ours)
        if not about:
            return
        try:
            for channel in self.channels:
                await channel.tell(about, now)
        except BaseException:
            await alarms.release(self.book, ours)
            raise
        await alarms.mark_told(self.book, ours, self.clock())
        self._write_down(about)

    def _write_down(self, about: tuple[Alarm, ...]) -> None:
        for alarm in about:
            self.log.warning(
                f"a {alarm.state.value} cause of dead letters",
                action="cause_alert",
                cause=alarm.cause,
                state=alarm.state.value,
                letters=alarm.letters,
            )

    def _miss(self, fault: Exception, pause: float) -> None:
        again = f"nobody was told; trying again in {pause:g} s"
        self.log.warning(f"{fault}; {again}", action="alert_waits")
