"""`dlo drill` on a running service: three letters, three ends, and nothing taken from anybody."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from aio_pika import Message
from yarl import URL

from tests.cli.terminal import COMMAND, dlo, surroundings
from tests.kit.broker import channel_to, depth, drain
from tests.kit.process import Service
from tests.kit.table import add_route, knows_routes, run_sql
from tests.servers.proxy import proxied


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"DLO_DLQ_PROCESSOR__DRILL": "true", "DLO_DLQ_PROCESSOR__MAX_RETRIES": "2"}


async def run(folder: Path, service: Service, *words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(dlo, folder, "drill", *words, **service.environment)


async def test_all_three_end_as_the_document_says(
    folder: Path, service: Service, rabbit_url: str
) -> None:
    async with channel_to(rabbit_url) as channel:
        await drain(channel, "dlq-queue")
        done = await run(folder, service)
        assert done.returncode == 0, done.stderr
        rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
        assert rows["rk.test.pass"].split()[1:] == ["accepted", "accepted", "yes"]
        assert "accepted after 1 retry" in rows["rk.test.fail.pass"]
        assert "dead letter after 2 retries: failed 3 times: rejected" in rows["rk.test.fail"]
        assert await depth(channel, "dlq-queue") == 1
        (dead,) = await drain(channel, "dlq-queue")
        assert f"rk.test.fail: sent, with the id {dead.message_id}\n" in done.stderr
        assert "rk.test.fail: rejected; retry 1 scheduled, waits in queue.delay.1 for 100ms" in (
            done.stderr
        )
        assert done.stderr.endswith(
            "the failed drill letter is a dead letter now: in the ledger, or in dlq-queue where "
            "ledger.intake is off\n"
        )


async def test_other_peoples_dead_letters_do_not_disturb(
    folder: Path, service: Service, rabbit_url: str
) -> None:
    async with channel_to(rabbit_url) as channel:
        strangers = asyncio.create_task(_strangers(rabbit_url))
        done = await run(folder, service, "-o", "json")
        strangers.cancel()
        with suppress(asyncio.CancelledError):
            await strangers
        await drain(channel, "dlq-queue")
    assert done.returncode == 0, done.stderr
    ends = {row["key"]: (row["retries"], row["as_expected"]) for row in json.loads(done.stdout)}
    assert ends == {
        "rk.test.pass": (0, True),
        "rk.test.fail": (2, True),
        "rk.test.fail.pass": (1, True),
    }


async def test_another_end_is_exit_1(folder: Path, service: Service) -> None:
    await add_route(service, "rk.test.fail.pass", 0)
    done = await run(folder, service, "-o", "json")
    run_sql(service.environment["DLO_DATABASE__URL"], "DELETE FROM dlq_event_config")
    await knows_routes(service, 0)
    ends = {row["key"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 1
    assert not ends["rk.test.fail.pass"]["as_expected"]
    assert ends["rk.test.fail.pass"]["result"].startswith(
        "dead letter after 0 retries: failed once"
    )
    assert ends["rk.test.pass"]["as_expected"]


async def test_no_end_in_time_is_exit_1(folder: Path, service: Service) -> None:
    done = await run(folder, service, "--timeout", "500ms", "-o", "json")
    ends = {row["key"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 1
    assert ends["rk.test.pass"]["result"].startswith("no end in time")


async def test_ctrl_c_is_exit_130_without_a_traceback(folder: Path, service: Service) -> None:
    process = await _begin(folder, service.environment)
    process.send_signal(signal.SIGINT)
    said = (await process.communicate())[1].decode()
    assert process.returncode == 130
    assert "Traceback" not in said


async def test_a_connection_that_is_lost_is_one_sentence(
    folder: Path, service: Service, rabbit_url: str
) -> None:
    url = URL(rabbit_url)
    async with proxied(str(url.host), url.port or 5672) as proxy:
        through = str(url.with_host("127.0.0.1").with_port(proxy.port))
        process = await _begin(folder, {**service.environment, "DLO_RABBIT__URL": through})
        proxy.reset()
        said = (await process.communicate())[1].decode()
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith(f"RabbitMQ 127.0.0.1:{proxy.port} ")
    assert "Traceback" not in said


async def _begin(folder: Path, variables: Mapping[str, str]) -> Process:
    """A drill whose letters are on their way."""
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "drill"),
        cwd=folder,
        env=surroundings(variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    for _ in range(3):
        assert b"sent" in await asyncio.wait_for(process.stderr.readline(), timeout=20)
    return process


async def _strangers(url: str) -> None:
    """Dead letters that are none of ours, without a pause longer than our look."""
    async with channel_to(url) as channel:
        exchange = await channel.get_exchange("dlq-exchange")
        while True:
            await exchange.publish(Message(b"x", headers={"x-dlo-id": "other"}), "dlq-routing-key")
            await asyncio.sleep(0.02)
