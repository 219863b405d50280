"""The DLQ monitor: a log line, a count and an alert for every dead letter, and a note in the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import stamina
import structlog

from service.core.delivery import Delivery
from service.core.outcome import Failed, Refuse, Refused
from service.core.verdict import Bury
from service.edge.listeners import Listeners
from service.flows.settlement.letters import transaction_in
from service.flows.settlement.policy import NAME, burial
from service.flows.settlement.workers import patiently
from service.ledger.book import Book
from service.ledger.settlements import bury
from service.ledger.transactions import Transaction, Unknown, find

ALERT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What people are told: ids and words, never a body."""

    letter: str
    queue: str
    reason: str
    transaction: str = ""
    status: str = "unknown"
    attempts: int = 0


Alert = Callable[[DeadLetter], Awaitable[None]]


async def no_alert(_dead: DeadLetter) -> None:
    """Nobody asked to be told."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """Reads the copies of dead letters; the letters themselves it never touches."""

    book: Book
    listeners: Listeners
    alert: Alert = no_alert
    log: Any = field(default_factory=lambda: structlog.get_logger("dlo.settlement"))

    async def report(self, delivery: Delivery, body: bytes) -> None:
        """Tell of one dead letter. What the workers buried they have counted themselves; what the
        broker buried nobody has."""
        id_ = _transaction(body)
        found = await patiently(lambda: find(self.book, id_)) if id_ else Unknown()
        attempts = found.attempts if isinstance(found, Transaction) else 0
        by_the_broker = burial(delivery, attempts)
        if by_the_broker is not None:
            self.listeners.judged(NAME, delivery, by_the_broker)
        reason = _reason(delivery, by_the_broker)
        if isinstance(found, Transaction):
            found = await patiently(lambda: bury(self.book, id_, reason, delivery.at))
        await self._tell(_dead(delivery, reason, found))

    async def _tell(self, dead: DeadLetter) -> None:
        self.log.error(
            "a letter lies in the dead letters",
            action="settlement_dead",
            letter=dead.letter,
            origin=dead.queue,
            transaction=dead.transaction,
            status=dead.status,
            attempts=dead.attempts,
            reason=dead.reason,
        )
        try:
            await self.alert(dead)
        except Exception as fault:  # noqa: BLE001  # the alert is a listener: it changes nothing
            self.log.error("the alert could not be sent", action="alert_failed", error=repr(fault))


@dataclass(frozen=True, slots=True)
class Webhook:
    """An alert as a POST of JSON."""

    url: str

    async def __call__(self, dead: DeadLetter) -> None:
        """Three tries: the dead letter stays where it is in any case."""
        said = {
            "flow": NAME,
            "letter": dead.letter,
            "queue": dead.queue,
            "transaction": dead.transaction,
            "status": dead.status,
            "attempts": dead.attempts,
            "reason": dead.reason,
        }
        async for attempt in stamina.retry_context(on=httpx2.HTTPError, attempts=3):
            with attempt:
                async with httpx2.AsyncClient(timeout=ALERT_SECONDS, trust_env=False) as client:
                    (await client.post(self.url, json=said)).raise_for_status()


def _transaction(body: bytes) -> str:
    try:
        return transaction_in(body)
    except Refuse:
        return ""


def _reason(delivery: Delivery, by_the_broker: Bury | None) -> str:
    if by_the_broker is not None:
        return by_the_broker.reason
    match delivery.outcome:
        case Refused(error) | Failed(error):
            return error
        case _:
            return "unknown"


def _dead(delivery: Delivery, reason: str, found: Transaction | Unknown) -> DeadLetter:
    letter, queue = delivery.marks.letter, delivery.origin.queue
    if isinstance(found, Unknown):
        return DeadLetter(letter, queue, reason)
    return DeadLetter(letter, queue, reason, found.id, found.status.value, found.attempts)
