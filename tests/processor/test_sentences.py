"""What is wrong is said in one sentence: what, where, what to do. Never a traceback, nothing touched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pamqp.common import FieldTable
from yarl import URL

from deploy.local.ports import free_port
from deploy.local.rabbitmq import Node
from tests.kit.broker import channel_to, clean, depth
from tests.kit.process import Service, environment, running
from tests.servers.waiting import eventually


async def says(service: Service, part: str) -> str:
    """What `/readyz` says of a part, once it is not well and has been tried."""

    def complaint() -> str:
        status, answer = service.get("/readyz")
        assert status == 503
        said: str = answer[part]["says"]
        assert not answer[part]["ok"]
        assert "not been" not in said
        return said

    return await eventually(complaint, within=15)


def assert_plain(service: Service, sentence: str) -> None:
    """The log says the same, in one line per try, and shows no code."""
    assert service.get("/livez")[0] == 200
    assert "Traceback" not in service.said()
    told = [line["event"] for line in service.lines("rabbitmq_away")]
    assert told
    assert all(sentence.partition(" (since")[0] in line for line in told)
    assert all("; trying again in " in line for line in told)


async def test_all_faults_of_the_settings_at_once(tmp_path: Path) -> None:
    given = environment("nonsense", "sqlite+aiosqlite:///x.db", DLO_QUEUES__TYPE="fast")
    given |= {"DLO_DLQ_PROCESSOR__TIERS": '["soon"]', "DLO_DLQ_PROCESOR__PREFETCH": "5"}
    service = Service(given, tmp_path)
    service.spawn()
    assert service.process is not None
    assert service.process.wait(30) == 2
    said = service.said().splitlines()
    assert len(said) == 4
    for key in ("rabbit.url", "queues.type", "dlq_processor.tiers", "did you mean dlq_processor."):
        assert sum(key in line for line in said) == 1, key


async def test_a_wait_that_differs_from_the_declared_one(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    async with channel_to(rabbit_url) as channel:
        arguments: FieldTable = {
            "x-message-ttl": 7777,
            "x-dead-letter-exchange": "retry-exchange-2",
            "x-dead-letter-routing-key": "retry.#.2",
        }
        await channel.declare_queue("queue.delay.2", durable=True, arguments=arguments)
        async with running(
            Service(environment(rabbit_url, sqlite_url), tmp_path), ready=False
        ) as it:
            said = await says(it, "rabbitmq")
            assert (
                "queue queue.delay.2 stands with x-message-ttl = 7777, the settings say 150" in said
            )
            assert "delete the queue" in said
            assert_plain(it, said)
            assert await depth(channel, "queue.delay.2") == 0  # it still stands
            await channel.queue_delete("queue.delay.2")
            await eventually(it.is_ready, within=15)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"password": "wrong"}, "refuses user guest; check name and password in rabbit.url"),
        (
            {"path": "/nowhere"},
            "does not let user guest into this vhost; create it or change rabbit.url",
        ),
        ({"port": None}, "cannot be reached; is it running, and is rabbit.url right?"),
    ],
)
async def test_a_broker_that_does_not_let_us_in(
    rabbit_url: str, sqlite_url: str, tmp_path: Path, change: dict[str, str], sentence: str
) -> None:
    url = URL(rabbit_url)
    if "port" in change:
        url = url.with_port(free_port())
    else:
        url = url.with_password(change.get("password", url.password))
        url = url.with_path(change.get("path", url.path))
    service = Service(environment(str(url), sqlite_url), tmp_path)
    async with running(service, ready=False):
        said = await says(service, "rabbitmq")
        assert sentence in said
        assert f"RabbitMQ 127.0.0.1:{url.port}" in said
        assert_plain(service, said)
        assert "wrong" not in service.said()


async def test_a_user_without_permission(
    rabbit_node: Node, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_node.url)
    url = str(URL(rabbit_node.url).with_user("limited").with_password("limited"))
    service = Service(environment(url, sqlite_url), tmp_path)
    async with running(service, ready=False):
        said = await says(service, "rabbitmq")
        # Which right it is, RabbitMQ says from 3.11 on.
        assert re.search("user limited may not (use|configure) exchange retry-exchange: ", said)
        assert "rabbitmqctl set_permissions" in said
        assert_plain(service, said)
