"""The bank port: a simulated bank that fails as it is told, and a real one behind HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from service.flows.settlement.bank import BankFailed, Payment, SimulatedBank
from service.flows.settlement.http_bank import HttpBank
from tests.flows.settlement.teller import Asked, open_teller


def payment(account: str, attempt: int = 1) -> Payment:
    return Payment("tx", account, "19.90", "EUR", attempt)


@pytest.mark.parametrize(
    ("account", "attempt", "chance", "settles"),
    [
        ("ACME", 1, 0.5, True),
        ("ACME", 1, 0.1, False),  # below the rate of failures
        ("FAIL", 9, 0.5, False),
        ("FLAKY", 2, 0.5, False),
        ("FLAKY", 3, 0.1, True),
    ],
)
async def test_the_simulated_bank(account: str, attempt: int, chance: float, settles: bool) -> None:
    accounts = (frozenset({"FAIL"}), frozenset({"FLAKY"}), 2, frozenset({"SLOW"}))
    bank = SimulatedBank(*accounts, timedelta(), 0.2, lambda: chance)
    if settles:
        assert await bank.settle(payment(account, attempt)) == "simulated-tx"
    else:
        with pytest.raises(BankFailed, match=f"fails for account {account}"):
            await bank.settle(payment(account, attempt))


async def test_a_slow_account_takes_its_time() -> None:
    nobody: frozenset[str] = frozenset()
    bank = SimulatedBank(
        nobody, nobody, 0, frozenset({"SLOW"}), timedelta(seconds=30), 0, lambda: 1
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bank.settle(payment("SLOW")), 0.05)


def answering(status: int) -> Callable[[Asked], Awaitable[int]]:
    async def answer(_asked: Asked) -> int:
        return status

    return answer


async def test_a_bank_behind_http_is_asked_with_the_transactions_id_as_its_key() -> None:
    async with open_teller() as teller:
        bank = HttpBank(teller.url(), timedelta(seconds=5))
        assert await bank.settle(payment("ACME")) == "bank-tx"
        await bank.close()
    (asked,) = teller.asked
    assert asked.key == asked.body["transaction_id"] == "tx"
    assert asked.body["amount"] == "19.90"


@pytest.mark.parametrize("status", [302, 400, 409, 429, 500, 503])
async def test_any_other_answer_is_a_failure(status: int) -> None:
    async with open_teller(answering(status)) as teller:
        bank = HttpBank(teller.url(), timedelta(seconds=5))
        with pytest.raises(BankFailed, match=f"the bank answered {status}"):
            await bank.settle(payment("ACME"))
        await bank.close()


async def test_a_bank_that_is_silent_or_away_is_a_failure() -> None:
    async def never(_asked: Asked) -> int:
        await asyncio.Event().wait()
        return 200

    async with open_teller(never) as teller:
        bank = HttpBank(teller.url(), timedelta(milliseconds=50))
        with pytest.raises(BankFailed, match="did not answer: ReadTimeout"):
            await bank.settle(payment("ACME"))
        await bank.close()
    away = HttpBank("http://127.0.0.1:1/", timedelta(seconds=1))
    with pytest.raises(BankFailed, match="did not answer: ConnectError"):
        await away.settle(payment("ACME"))
    await away.close()
