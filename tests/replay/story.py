"""Foreign teams with dead letters, a running service, and an operator at its API."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from service.core.marks import REPLAY
from tests.kit.broker import channel_to, clean
from tests.kit.process import Service, environment
from tests.kit.shop import DEAD_LETTERS
from tests.servers.waiting import eventually

TEAMS = ("orders", "billing", "audit", "returns")
QUICK = {
    # No retries: what a consumer rejects is a dead letter at once, also when it is sent back.
    "DLO_ROUTES": '{"#" = 0}',
    "DLO_LEDGER__INTAKE": "true",
    "DLO_REPLAY__WATCH": "1s",
    "DLO_REPLAY__RATE": "200.0",
    "DLO_DLQ_PROCESSOR__PREFETCH": "200",
    "DLO_LOG__LEVEL": "error",
}

Accepts = Callable[[AbstractIncomingMessage], bool]


def office(rabbit_url: str, database_url: str, folder: Path, **settings: str) -> Service:
    """A service that is not started yet."""
    return Service(environment(rabbit_url, database_url, **QUICK | settings), folder)


@dataclass
class Story:
    """Teams whose consumers reject everything until told otherwise; they note what was sent back."""

    service: Service
    publishing: AbstractChannel
    consuming: AbstractChannel
    accepts: Accepts = lambda _message: False
    replayed: list[tuple[float, str, str]] = field(default_factory=list)
    """When, in which queue, which body: deliveries that a replay made."""
    handled: Counter[str] = field(default_factory=Counter)

    async def open(self, queues: Sequence[str] = TEAMS, **arguments: str) -> None:
        """Queues that dead-letter to the central processor, and their consumers."""
        for name in queues:
            wanted = {**DEAD_LETTERS, **arguments}
            queue = await self.consuming.declare_queue(name, durable=True, arguments={**wanted})
            await queue.consume(self.take)

    async def send(self, count: int, queues: Sequence[str] = TEAMS) -> None:
        """Letters to all queues in turn, each body once."""
        exchange = self.publishing.default_exchange
        for first in range(0, count, 500):
            numbers = range(first, min(first + 500, count))
            await asyncio.gather(
                *(
                    exchange.publish(_letter(number), queues[number % len(queues)])
                    for number in numbers
                )
            )

    async def parked(self, count: int, within: float = 30) -> None:
        """Wait until so many letters are in the ledger."""

        def enough() -> bool:
            assert self.states().get("parked", 0) == count, self.states()
            return True

        await eventually(enough, within, pause=0.1)

    def states(self) -> dict[str, int]:
        """How many letters are in which state."""
        ledger = self.ask("/api/v1/status")["ledger"]
        found: dict[str, int] = ledger["letters"] if ledger else {}
        return {state: letters for state, letters in found.items() if letters}

    def ask(self, path: str) -> Any:
        """A GET that must succeed."""
        status, answer = self.service.get(path)
        assert status == 200, (status, answer)
        return answer

    def tell(
        self, path: str, body: Mapping[str, Any] | None = None, **headers: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """A POST: its status, its answer, its headers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.service.port}{path}",
            json.dumps(body or {}).encode(),
            {"Content-Type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read()), dict(refusal.headers)

    def start(self, **wanted: Any) -> str:
        """Start a replay; its id."""
        status, job, headers = self.tell("/api/v1/replays", {"filter": {}, **wanted})
        assert status == 202, job
        assert headers["location"] == f"/api/v1/replays/{job['id']}"
        return str(job["id"])

    def job(self, id_: str) -> dict[str, Any]:
        """How a replay stands."""
        found: dict[str, Any] = self.ask(f"/api/v1/replays/{id_}")
        return found

    async def ended(self, id_: str, within: float = 30) -> dict[str, Any]:
        """Wait until every letter of a replay has its result."""

        def over() -> dict[str, Any] | None:
            job = self.job(id_)
            assert job["ended_at"], job
            return job

        job = await eventually(over, within, pause=0.1)
        assert job is not None
        return job

    async def sees(self, count: int, within: float = 20) -> None:
        """Wait until consumers have seen so many deliveries of replays."""
        try:
            await eventually(lambda: len(self.replayed) >= count, within)
        except AssertionError:
            _, jobs = self.service.get("/api/v1/replays")
            raise AssertionError(f"{len(self.replayed)} of {count} came; {jobs}") from None

    async def take(self, message: AbstractIncomingMessage) -> None:
        """One delivery, by any consumer."""
        body = message.body.decode()
        if REPLAY in message.headers:
            now = asyncio.get_running_loop().time()
            self.replayed.append((now, message.routing_key or "", body))
        if self.accepts(message):
            self.handled[body] += 1
            await message.ack()
        else:
            await message.reject(requeue=False)


def _letter(number: int) -> Message:
    name = f"{number:06}"
    # Some teams name their letters, some leave that to us.
    mode, message_id = DeliveryMode.PERSISTENT, name if number % 2 else None
    return Message(name.encode(), message_id=message_id, delivery_mode=mode)


@asynccontextmanager
async def story(service: Service, rabbit_url: str) -> AsyncIterator[Story]:
    """The teams on a clean broker, and the service, not started yet; all of it ends with the test."""
    await clean(rabbit_url, *TEAMS)
    async with channel_to(rabbit_url) as publishing, channel_to(rabbit_url, 500) as consuming:
        try:
            yield Story(service, publishing, consuming)
        finally:
            service.kill()
    await clean(rabbit_url, *TEAMS)
