"""Broker or database away, restarted, a piece missing: letters wait, none is lost or buried for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiormq.exceptions import ChannelNotFoundEntity
from yarl import URL

from deploy.local.ports import free_port
from deploy.local.postgres import Server
from deploy.local.rabbitmq import Node
from service.ledger.schema import upgrade
from tests.kit.broker import channel_to, clean, depth
from tests.kit.lanes import CONNECTIONS
from tests.kit.process import Service, environment, running
from tests.kit.shop import DEAD_LETTERS, Shop, open_shop, retried
from tests.servers.proxy import Proxy, proxied
from tests.servers.waiting import eventually

ROUTES = '{"order.#" = 3}'


@asynccontextmanager
async def opened(port: int, target: int) -> AsyncIterator[None]:
    """A server that appears on a port where nobody listened before."""
    proxy = Proxy("127.0.0.1", target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        proxy.close()


async def come_home(shop: Shop, count: int, within: float = 15) -> None:
    """Every letter is seen a second time, each once, and nothing is buried."""
    await eventually(lambda: len(back(shop)) >= count, within)
    assert sorted(back(shop)) == [f"letter {n:02}" for n in range(count)]
    assert await depth(shop.channel, "dlq-queue") == 0
    assert await depth(shop.channel, "retry-queue") == 0


def back(shop: Shop) -> list[str]:
    """The letters that came back, by their ids."""
    return [str(m.message.message_id) for m in shop.seen if retried(m.message)]


async def test_a_broker_that_comes_later(rabbit_url: str, sqlite_url: str, tmp_path: Path) -> None:
    await clean(rabbit_url)
    real, port = URL(rabbit_url), free_port()
    given = environment(str(real.with_port(port)), sqlite_url, DLO_ROUTES=ROUTES)
    async with running(Service(given, tmp_path), ready=False) as service:
        await eventually(lambda: len(service.lines("rabbitmq_away")) >= 2, within=20)
        assert service.get("/livez")[0] == 200
        assert service.get("/readyz")[0] == 503
        async with opened(port, real.port or 5672), channel_to(rabbit_url) as channel:
            await eventually(service.is_ready, within=20)
            shop = await open_shop(channel)
            await shop.consume(retried)
            await shop.publish("order.created", message_id="letter 00")
            await come_home(shop, 1)
    assert "Traceback" not in service.said()


async def test_a_database_that_comes_later(
    rabbit_url: str, postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    """Without routes every letter would be buried: nothing is consumed before they were read once."""
    await clean(rabbit_url)
    await upgrade(postgres_url)
    port = free_port()
    away = str(URL(postgres_url).with_port(port))
    async with (
        running(Service(environment(rabbit_url, away), tmp_path), ready=False) as service,
        channel_to(rabbit_url) as channel,
    ):
        await eventually(lambda: service.lines("database_away"), within=20)
        await eventually(lambda: "waiting for the first routes" in _says(service, "rabbitmq"))
        shop = await open_shop(channel)
        await shop.consume(retried)
        postgres.query(
            "INSERT INTO dlq_event_config (name, max_retries) VALUES ('order.created', 1)",
            URL(postgres_url).path.removeprefix("/"),
        )
        await shop.publish("order.created", message_id="letter 00")
        await eventually(lambda: _holds(rabbit_url, "retry-queue", 1))
        assert service.get("/readyz")[0] == 503
        assert "refuses connections; is it running" in _says(service, "database")
        async with opened(port, postgres.port):
            await come_home(shop, 1)
            assert service.is_ready()
    assert "Traceback" not in service.said()


async def test_a_broker_restarted_in_the_middle(
    rabbit_node: Node, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_node.url)
    tiers = {"DLO_DLQ_PROCESSOR__TIERS": '["1s"]', "DLO_ROUTES": ROUTES}
    service = Service(environment(rabbit_node.url, sqlite_url, **tiers), tmp_path)
    async with running(service):
        async with channel_to(rabbit_node.url) as channel:
            shop = await open_shop(channel)
            await shop.consume(retried)
            for n in range(50):
                await shop.publish("order.created", message_id=f"letter {n:02}", delivery_mode=2)
            await eventually(lambda: len(shop.seen) == 50)
        await asyncio.to_thread(rabbit_node.restart)
        await eventually(service.is_ready, within=20)
        async with channel_to(rabbit_node.url) as channel:
            again = await open_shop(channel)
            await again.consume(retried)
            await come_home(again, 50, within=30)
    assert "Traceback" not in service.said()


async def test_connections_cut_while_nothing_moves_come_back_by_themselves(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    real = URL(rabbit_url)
    async with proxied("127.0.0.1", real.port or 5672) as proxy:
        given = environment(str(real.with_port(proxy.port)), sqlite_url)
        async with running(Service(given, tmp_path)) as service:
            before = service.connections(proxy.port)
            proxy.reset()
            others = CONNECTIONS["wire"]
            await eventually(lambda: len(service.connections(proxy.port) - before) == others)
            await eventually(service.is_ready)
    assert "Traceback" not in service.said()


async def test_pieces_of_the_topology_deleted_in_the_middle(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    """Letters are held until the piece is declared anew; none is buried for it."""
    await clean(rabbit_url)
    given = environment(rabbit_url, sqlite_url, DLO_ROUTES=ROUTES)
    async with running(Service(given, tmp_path)) as service, channel_to(rabbit_url) as channel:
        shop = await open_shop(channel)
        await shop.consume(retried)
        await channel.exchange_delete("route-delay")
        await send_home(shop, 20)
        await channel.queue_delete("queue.delay.1")
        await send_home(shop, 20)
        await shop.consume(lambda _: False, await shop.another("billing", "stray", **DEAD_LETTERS))
        await channel.exchange_delete("dlq-exchange")
        await shop.publish("stray", message_id="stray")
        await eventually(lambda: _holds(rabbit_url, "dlq-queue", 1))
        assert service.is_ready()
    assert "Traceback" not in service.said()


async def test_a_missing_dead_letter_exchange_is_put_back_without_being_asked(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    """Nobody publishes to it, so nobody would notice: RabbitMQ just drops what is dead-lettered there."""
    await clean(rabbit_url)
    given = environment(rabbit_url, sqlite_url, DLO_ROUTES=ROUTES)
    async with running(Service(given, tmp_path)), channel_to(rabbit_url) as channel:
        shop = await open_shop(channel)
        await shop.consume(retried)
        await channel.exchange_delete("retry-exchange")
        await channel.exchange_delete("retry-exchange-1")

        async def stands_again() -> bool:
            async with channel_to(rabbit_url) as another:
                with suppress(ChannelNotFoundEntity):
                    await another.get_exchange("retry-exchange-1")
                    return True
            return False

        await eventually(stands_again, within=15)
        await send_home(shop, 20)


async def test_a_full_queue_makes_only_its_own_letters_wait(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    settings = {"DLO_ROUTES": '{"#" = 3}', "DLO_DLQ_PROCESSOR__PREFETCH": "5"}
    given = environment(rabbit_url, sqlite_url, **settings)
    async with running(Service(given, tmp_path)) as service, channel_to(rabbit_url) as channel:
        shop = await open_shop(channel)
        full: dict[str, str | int] = {
            **DEAD_LETTERS,
            "x-max-length": 10,
            "x-overflow": "reject-publish",
        }
        billing = await shop.another("billing", "bill.#", **full)
        for n in range(10):
            await shop.publish("bill.created", message_id=f"bill {n}")
        rejected = [await billing.get() for _ in range(10)]
        for n in range(10):  # billing is full again before its rejected letters come back
            await shop.publish("bill.created", message_id=f"next {n}")
        for letter in rejected:
            assert letter is not None
            await letter.reject(requeue=False)
        await eventually(lambda: "they wait again" in service.said(), within=10)
        await shop.consume(retried)
        await send_home(shop, 20)
        await billing.purge()
        await eventually(lambda: _holds(rabbit_url, "billing", 10), within=10)
        assert await depth(channel, "dlq-queue") == 0


async def send_home(shop: Shop, count: int) -> None:
    """Letters that fail once and come home once."""
    shop.seen.clear()
    for n in range(count):
        await shop.publish("order.created", message_id=f"letter {n:02}")
    await come_home(shop, count)


def _says(service: Service, part: str) -> str:
    answer = service.get("/readyz")[1]
    return str(answer[part]["says"]) if answer else ""


async def _holds(url: str, queue: str, count: int) -> bool:
    async with channel_to(url) as channel:
        return await depth(channel, queue) == count
