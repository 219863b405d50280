"""The intake on a real broker: letters as bytes, in batches, settled at one stroke, whatever happens."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from structlog.testing import capture_logs
from yarl import URL

from service.edge.wire import Batch, Intake, Refused, connection
from tests.kit.broker import channel_to, depth
from tests.kit.wire import field, properties, wire_to
from tests.servers.proxy import Proxy, proxied
from tests.servers.waiting import eventually

HERE = Path(__file__).parent
ODD = properties(
    content_type=b"\xff",
    headers=field(b"\xfe", b"T", b"\xff" * 8),
    message_id=b"m",
    delivery_mode=2,
)


@pytest.fixture
async def channel(rabbit_url: str) -> AsyncIterator[AbstractChannel]:
    """A channel to look around with."""
    async with channel_to(rabbit_url) as opened:
        yield opened


@pytest.fixture
async def queue(channel: AbstractChannel) -> AsyncIterator[str]:
    """A queue of this test's own."""
    name = f"intake-{uuid4().hex}"
    await channel.declare_queue(name, durable=True)
    yield name
    await channel.queue_delete(name)


@asynccontextmanager
async def through(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the broker, and the URL through it."""
    real = URL(url)
    async with proxied(real.host or "", real.port or 5672) as proxy:
        yield proxy, str(real.with_port(proxy.port))


async def fill(channel: AbstractChannel, queue: str, count: int, body: bytes = b"") -> None:
    """Letters numbered from 0."""
    letters = (Message(b"%d " % n + body) for n in range(count))
    await asyncio.gather(*(channel.default_exchange.publish(each, queue) for each in letters))


async def taken(intake: Intake, count: int) -> list[Batch]:
    """So many letters, in batches, none settled."""
    batches: list[Batch] = []
    while sum(len(batch.letters) for batch in batches) < count:
        batches.append(await asyncio.wait_for(intake.take(count, within=0.05), 5))
    return batches


def numbers(*batches: Batch) -> list[int]:
    """Which letters these are."""
    return [int(each.body.split()[0]) for batch in batches for each in batch.letters]


async def test_a_letter_comes_byte_for_byte(rabbit_url: str, queue: str) -> None:
    body = bytes(range(256)) * 2000  # several frames
    async with wire_to(rabbit_url) as wire, Intake(rabbit_url, queue) as intake:
        await wire.publish("", queue, [(ODD, body), (properties(), b"")])
        batch = Batch(tuple(x for each in await taken(intake, 2) for x in each.letters))
        odd, empty = batch.letters
        assert (odd.exchange, odd.routing_key, odd.redelivered) == ("", queue, False)
        assert (odd.properties, odd.body) == (ODD, body)
        assert odd.headers == field(b"\xfe", b"T", b"\xff" * 8)
        assert (empty.properties, empty.headers, empty.body) == (properties(), b"", b"")


async def test_batches_are_bounded_and_settled_together(
    rabbit_url: str, channel: AbstractChannel, queue: str
) -> None:
    await fill(channel, queue, 50)
    async with Intake(rabbit_url, queue, prefetch=20) as intake:
        first = await intake.take(most=15, within=0.2)
        assert numbers(first) == list(range(15))
        rest = await taken(intake, 5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(intake.take(1), 0.2)  # twenty are in our hands, and no more
        assert rest[-1].acknowledge()  # and with it the first batch
        more = await taken(intake, 20)
        assert numbers(*more) == list(range(20, 40))
    async with Intake(rabbit_url, queue) as intake:
        again = await taken(intake, 30)
        assert numbers(*again) == list(range(20, 50))
        assert [each.redelivered for batch in again for each in batch.letters].count(True) == 20
        assert again[0].give_back()
        back = await taken(intake, len(again[0].letters))
        assert numbers(*back) == numbers(again[0])
        for batch in (*again[1:], *back):
            batch.acknowledge()
    assert await depth(channel, queue) == 0


async def test_a_lost_connection_is_found_again(
    rabbit_url: str, channel: AbstractChannel, queue: str
) -> None:
    async with through(rabbit_url) as (proxy, url), Intake(url, queue, pause=0.2) as intake:
        await fill(channel, queue, 10)
        lost = await taken(intake, 10)
        proxy.reset()
        await eventually(lambda: intake.trouble is not None, pause=0.001)
        assert not any(batch.acknowledge() for batch in lost)
        again = await taken(intake, 10)
        assert numbers(*again) == numbers(*lost)
        assert intake.trouble is None
        assert again[-1].acknowledge()
    assert await depth(channel, queue) == 0


async def test_silence_is_found_out_by_the_heart(
    rabbit_url: str, channel: AbstractChannel, queue: str
) -> None:
    async with through(rabbit_url) as (proxy, url):
        quick = str(URL(url).update_query(heartbeat=1, timeout=1))
        async with Intake(quick, queue, pause=0.2) as intake:
            proxy.black_hole_for(0)
            await fill(channel, queue, 3)
            (batch,) = await taken(intake, 3)
            assert batch.acknowledge()


async def test_a_deleted_queue_is_consumed_again_when_it_is_back(
    rabbit_url: str, channel: AbstractChannel, queue: str
) -> None:
    async with Intake(rabbit_url, queue) as intake:
        await channel.queue_delete(queue)
        await eventually(lambda: isinstance(intake.trouble, Refused))
        await channel.declare_queue(queue, durable=True)
        await fill(channel, queue, 3)
        assert numbers(*await taken(intake, 3)) == [0, 1, 2]
        assert intake.trouble is None


async def test_a_queue_that_is_not_there_is_an_error_at_once(rabbit_url: str) -> None:
    with capture_logs() as lines, pytest.raises(Refused, match="no queue 'nowhere'"):
        await Intake(rabbit_url, "nowhere").open()
    assert not lines, "whoever opens it is told, and says so"


async def test_bytes_in_hand_are_bounded(
    rabbit_url: str, channel: AbstractChannel, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_IN_HAND", 3 * 1024 * 1024)
    await fill(channel, queue, 40, b"x" * 1024 * 1024)
    async with Intake(rabbit_url, queue, prefetch=40) as intake:
        seen: list[int] = []
        while len(seen) < 40:
            batch = await asyncio.wait_for(intake.take(most=40, within=0.05), 5)
            assert len(batch.letters) <= 5  # the limit, and what one read had brought already
            seen += numbers(batch)
            assert batch.acknowledge()
        assert seen == list(range(40))


async def test_a_stop_leaves_what_came_to_be_settled(
    rabbit_url: str, channel: AbstractChannel, queue: str
) -> None:
    async with Intake(rabbit_url, queue) as intake:
        await fill(channel, queue, 5)
        batches = await taken(intake, 5)
        await intake.stop()
        await fill(channel, queue, 2)
        assert batches[-1].acknowledge()
    assert await depth(channel, queue) == 2


async def test_tls_with_the_certificate_checked(
    rabbit_url: str, channel: AbstractChannel, queue: str
) -> None:
    real = URL(rabbit_url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(HERE / "cert.pem", HERE / "key.pem")
    proxy = Proxy(real.host or "", real.port or 5672)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    url = real.with_scheme("amqps").with_host("localhost").with_port(port)
    try:
        with pytest.raises(ssl.SSLCertVerificationError):
            await Intake(str(url), queue).open()
        async with Intake(str(url.update_query(cafile=str(HERE / "cert.pem"))), queue) as intake:
            await fill(channel, queue, 3, b"x" * 300_000)
            assert numbers(*await taken(intake, 3)) == [0, 1, 2]
    finally:
        server.close()
        proxy.close()
