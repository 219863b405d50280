"""Letters of other frameworks, in a queue that was adopted, are sent back to where they died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aio_pika import Message
from aio_pika.abc import AbstractIncomingMessage

from tests.kit.broker import depth
from tests.replay.story import TEAMS, Story, office, story
from tests.servers.waiting import eventually

ADOPTED = "acme.dlq"
LETTERS: dict[str, dict[str, Any]] = {
    "orders": {  # Spring AMQP
        "x-exception-stacktrace": "java.lang.IllegalStateException: boom\n\tat acme.Orders.take(O.java:7)",
        "x-exception-message": "boom",
        "x-original-exchange": "",
        "x-original-routingKey": "orders",
    },
    "billing": {  # MassTransit
        "MT-Fault-ExceptionType": "Acme.Late",
        "MT-Fault-Message": "late",
        "MT-Fault-InputAddress": "rabbitmq://host/vhost/billing?durable=true",
        "MT-Reason": "fault",
    },
    "audit": {  # NServiceBus
        "NServiceBus.FailedQ": "audit",
        "NServiceBus.ExceptionInfo.ExceptionType": "System.TimeoutException",
        "NServiceBus.ExceptionInfo.Message": "took too long",
    },
}


async def test_a_replay_lands_where_they_died(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    service = office(rabbit_url, sqlite_url, tmp_path, DLO_ADOPT=f'[{{queue="{ADOPTED}"}}]')
    async with story(service, rabbit_url) as teams:
        await _fill(teams)
        await service.start()
        await teams.parked(5)
        seen: dict[str, AbstractIncomingMessage] = {}

        def accepts(message: AbstractIncomingMessage) -> bool:
            seen[message.routing_key or ""] = message
            return message.routing_key != "returns"

        teams.accepts = accepts
        await _consume(teams)
        _, plan, _ = teams.tell("/api/v1/replays", {"filter": {}, "dry_run": True})
        assert (plan["total"], plan["without_origin"]) == (4, 1)
        assert [line["queue"] for line in plan["queues"]] == sorted(TEAMS)

        job = await teams.ended(teams.start(canary=0))
        assert job["letters"] == {"quiet": 3, "back": 1}  # one dies again, and is recognised
        for queue, own in LETTERS.items():
            headers = seen[queue].headers
            assert own.items() <= headers.items()
            assert headers.keys() - own.keys() == {"x-dlo-id", "x-dlo-replay"}
            assert seen[queue].body == queue.encode()
        assert "x-death" not in seen["returns"].headers

        # Nobody knows where the last one belongs: an operator does.
        nobody_knows = {"text": "nothing on it says why"}
        status, problem, _ = teams.tell("/api/v1/replays", {"filter": nobody_knows})
        assert (status, "target" in problem["hint"]) == (409, True)
        job = await teams.ended(teams.start(filter=nobody_knows, target="orders"))
        assert job["letters"] == {"quiet": 1}
        assert seen["orders"].body == b"homeless"
        assert await depth(teams.publishing, ADOPTED) == 0
        await teams.publishing.queue_delete(ADOPTED)


async def _fill(teams: Story) -> None:
    """Plain AMQP: what the frameworks leave behind, a rejected letter, and one without a word."""
    publishing = teams.publishing
    await publishing.queue_delete(ADOPTED)
    await publishing.declare_queue(ADOPTED, durable=True)
    exchange = publishing.default_exchange
    for queue, headers in LETTERS.items():
        letter = Message(queue.encode(), headers=headers, message_id=f"{queue}-1")
        await exchange.publish(letter, ADOPTED)
    await exchange.publish(Message(b"homeless"), ADOPTED)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": ADOPTED}
    returns = await publishing.declare_queue("returns", durable=True, arguments={**arguments})
    await exchange.publish(Message(b"returned"), "returns")
    await (await returns.get()).reject(requeue=False)
    await eventually(lambda: _has(teams, 5))


async def _consume(teams: Story) -> None:
    for name in LETTERS:
        await teams.publishing.declare_queue(name, durable=True)
    for name in TEAMS:
        queue = await teams.consuming.get_queue(name)
        await queue.consume(teams.take)


async def _has(teams: Story, count: int) -> bool:
    return await depth(teams.publishing, ADOPTED) >= count
