"""The two workers: what is done with a transaction, said in outcomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, assert_never

import stamina

from service.core.outcome import Refuse
from service.flows.desk import Clock, utc_now
from service.flows.settlement import letters
from service.flows.settlement.bank import Bank, Payment
from service.flows.settlement.outbox import Relay
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.settlements import Attempt, NotProcessed, SettledBefore, begin, settle
from service.ledger.transactions import Transaction, Unknown, process

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Workers:
    """Process a transaction, settle it. Each may see a letter twice and does its work once."""

    book: Book
    bank: Bank
    relay: Relay
    clock: Clock = utc_now

    async def process(self, body: bytes) -> None:
        """`created` → `processed`, and the settlement is asked for."""
        id_ = letters.transaction_in(body)
        found = await patiently(lambda: process(self.book, id_, self.clock(), letters.requested))
        match found:
            case Transaction():
                self.relay.wake()
            case Unknown():
                raise Refuse(f"there is no transaction {id_}")
            case never:
                assert_never(never)

    async def settle(self, body: bytes) -> None:
        """`processed` → `settled`, if the bank says so; whatever it says instead is a failure."""
        id_ = letters.transaction_in(body)
        begun = await patiently(lambda: begin(self.book, id_))
        match begun:
            case Attempt(transaction, number):
                reference = await self.bank.settle(_payment(transaction, number))
                await patiently(lambda: settle(self.book, id_, reference, self.clock()))
            case SettledBefore():
                return
            case NotProcessed():
                raise Refuse(f"transaction {id_} is not processed yet")
            case Unknown():
                raise Refuse(f"there is no transaction {id_}")
            case never:
                assert_never(never)


def _payment(transaction: Transaction, attempt: int) -> Payment:
    draft = transaction.draft
    return Payment(transaction.id, draft.account, draft.amount, draft.currency, attempt)


async def patiently(verb: Callable[[], Awaitable[T]]) -> T:
    """A database that is away is nobody's failed attempt: the letter stays in hand until it is back."""
    attempts = stamina.retry_context(
        on=LedgerAway, attempts=None, timeout=None, wait_initial=0.2, wait_max=5.0, wait_jitter=0.2
    )
    async for attempt in attempts:
        with attempt:
            return await verb()
    raise AssertionError("it is tried without end")
