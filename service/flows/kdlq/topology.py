"""KDLQ's queues on RabbitMQ. All but two kinds are the user's: they are made only where they are not there.

A failing message's life:
1. It is in `orders`; the handler asks for redelivery. A copy goes to `orders.again` (or back to
   `orders`), with `KDLQ_Redelivered: 1`.
2. Its redeliveries are spent, or the handler failed: a copy goes to `orders.dlq`, with `KDLQ_Kills: 1`.
3. Somebody processes the DLQ, and it fails again. With `max_kills = 1` it is skipped: acknowledged,
   written down, and in the service a copy is in `kdlq.skipped`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from faststream.rabbit import QueueType, RabbitQueue

from service.core.plan import Address
from service.topology.tables import DEFAULT, Arguments, Topology, durable_queue, expires_to

SKIPPED = "kdlq.skipped"
# On RabbitMQ 4 a quorum queue drops a letter after 20 returns, and -1 ("never") kills at the first
# one on 3.10. So: a number nobody reaches by hand.
MANY = 100_000


@dataclass(frozen=True, slots=True)
class Names:
    """The queues of one consumer."""

    source: str
    dlq: str
    redelivery: str | None = None
    delay: timedelta = timedelta()

    @property
    def taken(self) -> tuple[str, ...]:
        """Those whose messages its handler gets."""
        again = self.redelivery
        return (self.source,) if again in (None, self.source) else (self.source, str(again))

    def again(self, queue: str) -> str:
        """Where a message of this queue is redelivered to."""
        return self.redelivery or queue


def wait_name(queue: str) -> str:
    """Where messages wait before they come back to this queue."""
    return f"kdlq.wait.{queue}"


def address(queue: str) -> Address:
    """A queue, by way of the default exchange."""
    return Address("", queue)


def user_queue(name: str, kind: QueueType) -> RabbitQueue:
    """A queue that is the user's: as it stands, or durable and of our kind where it does not."""
    return RabbitQueue(  # type: ignore[call-overload, no-any-return]  # the kind is a setting, not a literal
        name, queue_type=kind, declare=False, arguments=_unlimited(kind)
    )


def wait_queue(name: str, delay: timedelta, kind: QueueType) -> RabbitQueue:
    """Messages to be redelivered wait here, all equally long."""
    return durable_queue(wait_name(name), expires_to(DEFAULT, name, delay, kind), kind)


def skipped_queue(kind: QueueType) -> RabbitQueue:
    """What was skipped, for the ledger."""
    return durable_queue(SKIPPED, _unlimited(kind), kind)


def tables(consumers: Iterable[Names], kind: QueueType) -> Topology:
    """Every queue of these consumers."""
    return sum((_consumer(names, kind) for names in consumers), Topology())


def _consumer(names: Names, kind: QueueType) -> Topology:
    users = tuple(user_queue(name, kind) for name in (*names.taken, names.dlq))
    if not names.delay:
        return Topology(queues=users)
    targets = dict.fromkeys(names.again(queue) for queue in names.taken)
    waits = (wait_queue(target, names.delay, kind) for target in targets)
    return Topology(queues=(*users, *waits))


def _unlimited(kind: QueueType) -> Arguments:
    return {"x-delivery-limit": MANY} if kind is QueueType.QUORUM else {}
