"""The bank: a port, and a simulated bank behind it that fails as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Payment:
    """What the bank is asked for. The transaction's id is the idempotency key: asked twice, it pays once."""

    transaction: str
    account: str
    amount: str
    currency: str
    attempt: int


class BankFailed(Exception):
    """The bank did not say that it has settled: it may or may not have."""


class Bank(Protocol):
    """Whoever can settle a payment."""

    async def settle(self, payment: Payment) -> str:
        """Return the bank's own reference when it is settled; raise BankFailed otherwise."""

    async def close(self) -> None:
        """Hang up."""


@dataclass(frozen=True, slots=True)
class SimulatedBank:
    """Settles what it is not told to fail; nothing is paid."""

    fail: frozenset[str]
    flaky: frozenset[str]
    flaky_failures: int
    slow: frozenset[str]
    slowness: timedelta
    failure_rate: float
    chance: Callable[[], float]

    async def settle(self, payment: Payment) -> str:
        """By the account's name, else by chance."""
        if payment.account in self.slow:
            await asyncio.sleep(self.slowness.total_seconds())
        if self._fails(payment):
            raise BankFailed(f"the simulated bank fails for account {payment.account}")
        return f"simulated-{payment.transaction}"

    async def close(self) -> None:
        """There is nothing to hang up."""

    def _fails(self, payment: Payment) -> bool:
        if payment.account in self.flaky:
            return payment.attempt <= self.flaky_failures
        return payment.account in self.fail or self.chance() < self.failure_rate
