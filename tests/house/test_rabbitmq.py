"""A private node: killed, restarted, adopted, with its letters and users; nothing stays behind."""

from __future__ import annotations

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused

from deploy.local.definitions import definitions
from deploy.local.rabbitmq import Node
from tests.servers.fixtures import LIMITED


async def publish(channel: AbstractChannel, body: bytes, queue: str) -> None:
    letter = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
    await channel.default_exchange.publish(letter, routing_key=queue)


async def test_confirmed_letters_survive_a_kill_and_the_node_keeps_its_place(
    rabbit_node: Node,
) -> None:
    before = rabbit_node.url
    async with await aio_pika.connect(rabbit_node.url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("house.kept", durable=True)
    rabbit_node.restart()  # a queue just declared is on disk only a moment later: a kill may forget it
    async with await aio_pika.connect(rabbit_node.url) as connection:
        await publish(await connection.channel(), b"still here", "house.kept")
        rabbit_node.kill()
    assert not rabbit_node.is_running
    assert rabbit_node.greeting() is None
    rabbit_node.start()
    assert rabbit_node.url == before
    async with await aio_pika.connect(rabbit_node.url) as connection:
        channel = await connection.channel()
        kept = await channel.get_queue("house.kept")
        letter = await kept.get(no_ack=True)
        assert letter is not None
        assert letter.body == b"still here"
        await kept.delete()


def test_a_node_left_by_another_run_is_taken_as_it_is(rabbit_node: Node) -> None:
    found = Node(rabbit_node.folder)
    assert found.is_running
    assert found.pid == rabbit_node.pid
    assert str(found.start()).startswith("RabbitMQ")
    assert found.pid == rabbit_node.pid


def test_its_ports_are_low_and_its_own(rabbit_node: Node) -> None:
    ports = rabbit_node.ports
    assert len({ports.amqp, ports.distribution, ports.epmd}) == 3
    assert max(ports.amqp, ports.distribution, ports.epmd) < 32_768
    assert not {5672, 25672, 4369} & {ports.amqp, ports.distribution, ports.epmd}


def test_its_tools_reach_it(rabbit_node: Node) -> None:
    users = rabbit_node.ctl("list_users", "--quiet")
    assert "guest" in users
    assert "limited" in users


async def test_the_limited_user_may_enter_and_touch_nothing_of_ours(rabbit_node: Node) -> None:
    url = rabbit_node.url.replace("guest:guest", "limited:limited")
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        with pytest.raises(ChannelAccessRefused):
            await channel.declare_queue("retry-queue")
        channel = await connection.channel()
        own = await channel.declare_queue("limited.own", auto_delete=True)
        await own.delete()


def test_definitions_hold_no_password() -> None:
    assert "limited'," not in str(definitions((LIMITED,))["users"]).replace(
        "'name': 'limited',", ""
    )
