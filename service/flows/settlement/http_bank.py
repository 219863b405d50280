"""A bank behind HTTP: POST with an Idempotency-Key; any 2xx is settled, anything else is not."""

from __future__ import annotations

from datetime import timedelta

import httpx2

from service.flows.settlement.bank import BankFailed, Payment

LONGEST = 255


class HttpBank:
    """One endpoint that settles a payment per request."""

    def __init__(self, url: str, timeout: timedelta) -> None:
        self._url = url
        self._client = httpx2.AsyncClient(timeout=timeout.total_seconds(), trust_env=False)

    async def settle(self, payment: Payment) -> str:
        """The answer's `reference`, else the transaction's id."""
        asked = {
            "transaction_id": payment.transaction,
            "account": payment.account,
            "amount": payment.amount,
            "currency": payment.currency,
        }
        key = {"Idempotency-Key": payment.transaction}
        try:
            answer = await self._client.post(self._url, json=asked, headers=key)
        except httpx2.HTTPError as fault:
            raise BankFailed(f"the bank did not answer: {type(fault).__name__} {fault}") from None
        if not answer.is_success:
            raise BankFailed(f"the bank answered {answer.status_code}")
        return _reference(answer) or payment.transaction

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()


def _reference(answer: httpx2.Response) -> str:
    """What the bank calls it. A bank that says nothing readable has settled nevertheless."""
    try:
        said = answer.json()
    except ValueError:
        return ""
    reference = said.get("reference") if isinstance(said, dict) else None
    text = reference if isinstance(reference, str) and reference.isprintable() else ""
    return text[:LONGEST]
