"""`dlo drill` where there is nothing to drill: one clear sentence, exit 1."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import aio_pika
import pytest
from faststream.rabbit import QueueType

from service.edge.declare import declare
from service.flows.dlq_processor.drill import FAIL, FAIL_PASS, PASS
from service.flows.dlq_processor.topology import tables
from service.office.drill import margin
from service.office.endings import Accepted, Died, End, Unended, is_as_written
from tests.cli.terminal import dlo, dlo_here, sentence
from tests.kit.broker import clean

CURE = "is the service running there (just up), and its drill on (dlq_processor.drill)?\n"


async def drill(folder: Path, url: str) -> tuple[int, str, str]:
    done = await asyncio.to_thread(dlo, folder, "drill", DLO_RABBIT__URL=url)
    return done.returncode, done.stdout, done.stderr


async def test_a_broker_that_is_away(folder: Path) -> None:
    assert await drill(folder, "amqp://127.0.0.1:1/") == (
        1,
        "",
        "RabbitMQ 127.0.0.1:1 cannot be reached; is it running, and is rabbit.url right?\n",
    )


async def test_the_drill_is_off(folder: Path, rabbit_url: str) -> None:
    await clean(rabbit_url)
    code, out, error = await drill(folder, rabbit_url)
    assert (code, out) == (1, "")
    assert error.endswith(f" has no test-retry-exchange; {CURE}")
    assert error.count("\n") == 1


async def test_nobody_consumes(folder: Path, rabbit_url: str) -> None:
    await clean(rabbit_url)
    async with await aio_pika.connect(rabbit_url) as connection:
        await declare(tables((timedelta(seconds=1),), QueueType.CLASSIC, drill=True), connection)
    code, out, error = await drill(folder, rabbit_url)
    assert (code, out) == (1, "")
    assert error.endswith(f": nobody consumes from retry-queue; {CURE}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("wrong", ["soon", "0s", "5"])
def test_a_bad_timeout_is_exit_2(folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    done = dlo_here(monkeypatch, folder, "drill", "--timeout", wrong)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Invalid value for '--timeout'" in sentence(done.stderr)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (Accepted(PASS, 0), True),
        (Accepted(PASS, 1), False),
        (Died(PASS, 0, ""), False),
        (Died(FAIL, 3, ""), True),
        (Died(FAIL, 0, "no route for rk.test.fail"), False),
        (Accepted(FAIL, 3), False),
        (Accepted(FAIL_PASS, 1), True),
        (Accepted(FAIL_PASS, 0), False),
        (Died(FAIL_PASS, 3, ""), False),
        (Unended(PASS, 0), False),
    ],
)
def test_what_the_document_says(end: End, expected: bool) -> None:
    assert is_as_written(end) is expected


@pytest.mark.parametrize(("shortest", "seconds"), [(0.1, 1), (4, 2), (10, 5), (600, 5)])
def test_the_margin_follows_the_tiers(shortest: float, seconds: int) -> None:
    tiers = (timedelta(seconds=1000), timedelta(seconds=shortest))
    assert margin(tiers) == timedelta(seconds=seconds)
