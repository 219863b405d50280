"""The post on a real broker: confirmed and routed, or an error that says why not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from structlog.testing import capture_logs
from yarl import URL

from service.core.marks import LETTER
from service.core.plan import Address, Send, SentBack
from service.edge.letter import Letter
from service.edge.post import NotSent, NotTaken, RabbitPost, Unroutable, Unsendable
from service.edge.tolerance import install
from tests.kit.broker import channel_to, drain
from tests.servers.proxy import Proxy
from tests.servers.waiting import eventually

install()
LETTER_OF = Letter(b"body", {"tenant": "acme"}, {"content_type": "text/plain"})


@pytest.fixture
async def channel(rabbit_url: str) -> AsyncIterator[AbstractChannel]:
    """A channel to look around with."""
    async with channel_to(rabbit_url) as opened:
        yield opened


@pytest.fixture
async def queue(channel: AbstractChannel) -> AsyncIterator[str]:
    """A queue of this test's own."""
    name = f"post-{uuid4().hex}"
    await channel.declare_queue(name, durable=True)
    yield name
    await channel.queue_delete(name)


@pytest.fixture
async def post(rabbit_url: str) -> AsyncIterator[RabbitPost]:
    """An open post."""
    post = RabbitPost(rabbit_url, timeout=5, ours=frozenset())
    await post.open()
    yield post
    await post.close()


def to_queue(name: str, letter: str) -> Send:
    """A send through the default exchange."""
    return Send(Address("", name), {LETTER: letter})


async def test_a_letter_arrives_persistent_and_no_id_is_invented(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    await post.send(LETTER_OF, to_queue(queue, "a"))
    (message,) = await drain(channel, queue)
    assert (message.body, message.content_type, message.message_id) == (b"body", "text/plain", None)
    assert message.delivery_mode is aio_pika.DeliveryMode.PERSISTENT
    assert message.headers == {"tenant": "acme", LETTER: "a"}


async def test_what_amqp_cannot_write_is_that_letter_s_fault_alone(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    long = Letter(b"body", {}, {"message_id": "ü" * 200})
    for letter, name in ((LETTER_OF, "q" * 400), (long, queue)):
        with pytest.raises(Unsendable, match="it cannot be written as AMQP"):
            await post.send(letter, SentBack(Address("", name), {LETTER: "a"}))
    assert post.trouble is None
    await post.send(LETTER_OF, to_queue(queue, "a"))
    assert len(await drain(channel, queue)) == 1


async def test_no_queue_is_unroutable_and_the_post_goes_on(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    with pytest.raises(Unroutable, match="no queue takes queue 'nobody'"):
        await post.send(LETTER_OF, to_queue("nobody", "a"))
    await post.send(LETTER_OF, to_queue(queue, "a"))
    assert len(await drain(channel, queue)) == 1


async def test_a_returned_letter_whose_id_is_no_text_is_not_taken_for_confirmed(
    post: RabbitPost,
) -> None:
    with pytest.raises(Unroutable):
        await post.send(
            LETTER_OF, to_queue("nobody", b"\xff\x00\xfe".decode("utf-8", "surrogateescape"))
        )


async def test_letters_with_one_id_in_flight_keep_their_own_fates(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    """aiormq by itself reports the unroutable one of such a pair as sent, and the other as returned."""
    targets = [queue, "nobody"] * 50
    sends = (post.send(LETTER_OF, to_queue(target, "same id")) for target in targets)
    fates = await asyncio.gather(*sends, return_exceptions=True)
    assert [isinstance(fate, Unroutable) for fate in fates] == [
        target == "nobody" for target in targets
    ]
    assert len(await drain(channel, queue)) == 50


async def test_a_missing_foreign_exchange_does_not_disturb_the_others(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    lost = Send(Address("no-such-exchange", "k"), {LETTER: "lost"})
    sends = [post.send(LETTER_OF, to_queue(queue, f"letter {n}")) for n in range(100)]
    fates = await asyncio.gather(post.send(LETTER_OF, lost), *sends, return_exceptions=True)
    assert isinstance(fates[0], Unroutable)
    assert fates[1:] == [None] * 100
    assert len(await drain(channel, queue)) == 100


async def test_a_body_of_several_frames_arrives_whole(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    body = bytes(range(256)) * 2000
    await post.send(Letter(body, {}, {}), to_queue(queue, "large"))
    await post.send(Letter(b"", {}, {}), to_queue(queue, "empty"))
    assert [message.body for message in await drain(channel, queue)] == [body, b""]


async def test_headers_as_large_as_a_frame_do_not_close_the_connection(
    post: RabbitPost, channel: AbstractChannel, queue: str
) -> None:
    await post.send(Letter(b"", {"big": "x" * 131_040}, {}), to_queue(queue, "big"))
    (message,) = await drain(channel, queue)
    assert message.headers[LETTER] == "big"
    assert message.headers["x-dlo-dropped-headers"] > 131_000  # type: ignore[operator]  # a number


async def test_a_queue_that_is_full_is_no_confirmation(
    post: RabbitPost, channel: AbstractChannel
) -> None:
    name = f"full-{uuid4().hex}"
    await channel.declare_queue(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    await post.send(LETTER_OF, to_queue(name, "first"))
    with pytest.raises(NotTaken, match="the queue refuses"):
        await post.send(LETTER_OF, to_queue(name, "second"))
    await channel.queue_delete(name)


async def test_a_broker_that_is_away_is_an_error_at_once() -> None:
    with pytest.raises(NotSent):
        await RabbitPost("amqp://127.0.0.1:1/", timeout=2, ours=frozenset()).send(
            LETTER_OF, to_queue("q", "a")
        )


async def test_a_lost_connection_is_told_once_however_often_it_is_tried(rabbit_url: str) -> None:
    url, knocks, is_away = URL(rabbit_url), 0, False
    proxy = Proxy("127.0.0.1", url.port or 5672)

    async def door(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal knocks
        if is_away:
            knocks += 1
            writer.close()
        else:
            await proxy.accept(reader, writer)

    server = await asyncio.start_server(door, "127.0.0.1", 0)
    there = str(url.with_port(server.sockets[0].getsockname()[1]))
    post = RabbitPost(there, timeout=0.4, ours=frozenset())
    with capture_logs() as lines:
        await post.open()
        is_away = True
        proxy.reset()
        await eventually(lambda: knocks >= 4)
        is_away = False
        await eventually(lambda: any(line["action"] == "post_open" for line in lines))
    assert [line["action"] for line in lines] == ["post_lost", "post_open"]
    await post.close()
    server.close()
    proxy.close()
