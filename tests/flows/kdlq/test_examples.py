"""The applications of the docs, as people start them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel

from service.core.marks import KILLS, ORIG_OFFSET, REASON, REDELIVERED
from tests.kit.broker import channel_to, depth, drain
from tests.kit.kafka import Outside, list_of
from tests.kit.process import ROOT, compiled
from tests.servers.kafka import MockKafka
from tests.servers.waiting import eventually

PAGE = (ROOT / "docs" / "flows" / "kdlq.md").read_text()
RUN = ("-m", "faststream", "run")
QUEUES = ("orders", "orders.again", "orders.dlq", "kdlq.wait.orders.again")


@pytest.mark.parametrize("name", ["orders_on_rabbitmq", "orders_on_kafka", "orders_by_hand"])
def test_the_application_is_the_one_in_the_docs(name: str) -> None:
    assert (ROOT / "docs" / "examples" / f"{name}.py").read_text().strip() in PAGE


async def test_orders_on_rabbitmq(rabbit_url: str) -> None:
    async with channel_to(rabbit_url) as channel:
        await _clean(channel)
        application = _spawn(*RUN, "docs.examples.orders_on_rabbitmq:app", RABBIT_URL=rabbit_url)
        try:
            await eventually(lambda: _consumed(rabbit_url), 20)
            await _publish(channel, b'{"id": 1, "stock": 3, "amount": 1}')
            await _publish(channel, b'{"id": 2, "stock": "not replicated", "amount": 1}')
            await _publish(channel, b'{"id": 3, "stock": 3, "amount": 0}')
            await eventually(lambda: _holds(channel, "orders.dlq", 2), 10)
        finally:
            application.terminate()
            said, _ = application.communicate(timeout=20)
        dead = {letter.body[7:8]: letter.headers for letter in await drain(channel, "orders.dlq")}
        assert (dead[b"2"][REDELIVERED], dead[b"2"][KILLS]) == (2, 1)
        assert (dead[b"3"].get(REDELIVERED), dead[b"3"][KILLS]) == (None, 1)
        assert b"handled 1" in said
        await _publish(channel, b"good")
        await _publish(channel, b"bad")
        by_hand = _spawn("-m", "docs.examples.orders_by_hand", RABBIT_URL=rabbit_url)
        said, _ = await asyncio.to_thread(by_hand.communicate, timeout=20)
        assert {b"ok", b"killed"} <= set(said.splitlines())
        assert [letter.body for letter in await drain(channel, "orders.dlq")] == [b"bad"]
        await _clean(channel)


async def test_orders_on_kafka() -> None:
    kafka = MockKafka()
    kafka.create("orders", "orders.billing.again", "orders.dlq")
    outside = Outside(kafka.address)
    application = _spawn(*RUN, "docs.examples.orders_on_kafka:app", KAFKA_SERVERS=kafka.address)
    try:
        for amount in (5, -5, -50):
            outside.send("orders", b'{"amount": %d}' % amount)

        async def over() -> bool:
            left = await asyncio.to_thread(outside.left, "orders.dlq", "billing-again")
            return left == 0 and len(await asyncio.to_thread(outside.read, "orders.dlq")) == 2

        await eventually(over, 20, 0.2)
        dead = await asyncio.to_thread(outside.read, "orders.dlq")
    finally:
        application.terminate()
        said, _ = application.communicate(timeout=20)
        kafka.close()
    assert [dict(list_of(record))[ORIG_OFFSET] for record in dead] == [b"1", b"2"]
    assert all(REASON in dict(list_of(record)) for record in dead)
    assert b"skipped orders/0/2: refused: the handler returned ERROR; its kills are spent" in said


def _spawn(*arguments: str, **environ: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **compiled(), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


async def _clean(channel: AbstractChannel) -> None:
    for queue in QUEUES:
        await channel.queue_delete(queue)


async def _consumed(url: str) -> bool:
    """Asking for a queue that is not there costs the channel."""
    async with channel_to(url) as channel:
        try:
            found = await channel.declare_queue("orders", passive=True)
        except aio_pika.exceptions.ChannelNotFoundEntity:
            return False
        return bool(found.declaration_result.consumer_count)


async def _holds(channel: AbstractChannel, queue: str, count: int) -> bool:
    return await depth(channel, queue) == count


async def _publish(channel: AbstractChannel, body: bytes) -> None:
    await channel.default_exchange.publish(aio_pika.Message(body), "orders")
