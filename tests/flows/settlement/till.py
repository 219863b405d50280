"""A customer's side: transactions asked for over HTTP, and the dead letters they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx2
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from tests.kit.broker import depth, drain
from tests.kit.process import Service
from tests.servers.waiting import eventually

PATH = "/api/v1/transactions"
DEAD = "dlq.settlement.requested"
WORKER = "settlement.requested.worker"
MONITOR = "dlq.settlement.monitor"


def payment(account: str = "ACME-1", **other: object) -> dict[str, object]:
    """A request that is in order."""
    return {"account": account, "amount": "19.90", "currency": "EUR", **other}


@dataclass
class Till:
    """Asks a running service for transactions."""

    service: Service
    made: list[str] = field(default_factory=list)

    async def pay(self, account: str = "ACME-1") -> str:
        """Make a transaction and return its id."""
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
            url = f"http://127.0.0.1:{self.service.port}{PATH}"
            answer = await client.post(url, json=payment(account))
        assert answer.status_code == 201, answer.text
        id_ = str(answer.json()["id"])
        assert answer.headers["location"] == f"{PATH}/{id_}"
        self.made.append(id_)
        return id_

    def look(self, id_: str) -> dict[str, Any]:
        """A transaction as it stands."""
        status, body = self.service.get(f"{PATH}/{id_}")
        assert status == 200, body
        return dict(body)

    async def becomes(self, id_: str, status: str, within: float = 10) -> dict[str, Any]:
        """Wait until a transaction has come so far."""
        await eventually(lambda: self.look(id_)["status"] == status, within)
        return self.look(id_)


async def dead_letters(
    channel: AbstractChannel, count: int, queue: str = DEAD
) -> list[AbstractIncomingMessage]:
    """Wait for so many dead letters, and take them; more would be an error."""

    async def there() -> bool:
        return await depth(channel, queue) >= count

    await eventually(there, within=10)
    taken = await drain(channel, queue)
    assert len(taken) == count
    return taken
