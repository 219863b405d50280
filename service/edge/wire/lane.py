"""The wire lane: consuming, posting and the relay between them, opened and closed as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from yarl import URL

from service.edge.carry_out import Mend
from service.edge.post import Trouble
from service.edge.wire.consuming import Consuming
from service.edge.wire.job import Clerk
from service.edge.wire.posting import Posting
from service.edge.wire.relay import Relay
from service.edge.wire.target import Target


@dataclass(frozen=True, slots=True)
class Manners:
    """How the lane behaves towards the broker."""

    prefetch: int
    """Letters in our hands per queue. After a crash at most so many come twice: two thirds may be on
    their way, for of others the broker may not have heard the acknowledgement yet."""
    publish_timeout: float
    reconnect: float
    """The longest pause between two tries to connect."""
    ours: frozenset[str]
    """Exchanges that we declare: if one is missing it is declared again."""


class WireLane:
    """Relays the letters of some queues; `clerks` give them their verdicts."""

    def __init__(self, url: str, clerks: Mapping[str, Clerk], manners: Manners, mend: Mend) -> None:
        self.queues = frozenset(clerks)
        self.posting = Posting(
            _named(url, "dead-letter-office wire post"),
            ours=manners.ours,
            timeout=manners.publish_timeout,
            pause=manners.reconnect,
            most=max(1, manners.prefetch * 2 // 3),
            on_open=lambda: self.relay.try_again(),
        )
        self.relay = Relay(self.posting, clerks, mend)
        self.consuming = Consuming(
            _named(url, "dead-letter-office wire"),
            self.relay.takes,
            prefetch=manners.prefetch,
            pause=manners.reconnect,
            gone=self.relay.forget,
        )

    @property
    def gap(self) -> Exception | None:
        """Why letters do not come, or cannot leave; None where they can."""
        return self.consuming.trouble or self.posting.link.trouble

    @property
    def trouble(self) -> Trouble | None:
        """Since when letters are held, and why; None where they leave."""
        return self.relay.trouble or (self.posting.trouble if self.relay.in_hand else None)

    @property
    def figures(self) -> tuple[tuple[str, str, Callable[[], float]], ...]:
        """What can be measured: name, what it is, and how it is asked for."""
        posting, relay, links = self.posting, self.relay, (self.posting.link, self.consuming.link)
        return (
            ("dlo_wire_letters_in_hand", "Came, not settled", lambda: relay.in_hand),
            ("dlo_wire_letters_held", "Sent again and again", lambda: relay.held),
            ("dlo_wire_letters_unconfirmed", "On their way", lambda: posting.unanswered),
            ("dlo_wire_blocked", "RabbitMQ takes no letters", lambda: float(posting.is_blocked)),
            ("dlo_wire_connections_opened", "So far", lambda: sum(each.opened for each in links)),
        )

    async def open(self) -> None:
        """Connect and consume, or raise; from then on stay so."""
        try:
            await self.posting.open()
            await self.consuming.open()
        except BaseException:
            await self.close()
            raise

    async def stop_intake(self, within: float) -> None:
        """Let no more letters come, and finish those in our hands; the rest goes back to its queue."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.consuming.stop()
                await self.relay.finished()

    async def close(self) -> None:
        """Hang up: the consumers first, so that nothing comes that cannot be sent."""
        self.relay.close()
        await self.consuming.close()
        await self.posting.close()


def _named(url: str, name: str) -> Target:
    return Target.of(str(URL(url).update_query(name=name)))
