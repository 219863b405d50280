"""The post for Kafka: a producer that is beyond help is replaced, and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from service.core.plan import Address, Send
from service.edge.kafka import post as edge
from service.edge.kafka.post import KafkaPost
from service.edge.kafka.records import Record
from service.edge.post import NotSent
from tests.kit.kafka import Outside
from tests.servers.kafka import MockKafka

PRODUCER_ID, NOT_AUTHORIZED = 22, 31  # the one answer that ends an idempotent producer for good
RECORD = Record(b"x", {}, {}, "s", 0, 0, None, None, b"x", ())
PROMPTLY = 20


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockKafka]:
    """A Kafka of our own."""
    mock = MockKafka()
    yield mock
    mock.close()


@asynccontextmanager
async def post_to(kafka: MockKafka) -> AsyncIterator[KafkaPost]:
    """A post, hung up at the end."""
    post = KafkaPost((kafka.address,), timeout=5)
    try:
        async with asyncio.timeout(PROMPTLY):
            yield post
    finally:
        await post.close()


async def test_a_fatal_fault_is_answered_and_the_next_letter_gets_a_new_producer(
    kafka: MockKafka,
) -> None:
    kafka.create("fatal")
    kafka.refuse(PRODUCER_ID, 1, NOT_AUTHORIZED)
    async with post_to(kafka) as post:
        sends = (post.send(RECORD, Send(Address("", "fatal"), {})) for _ in range(3))
        answers = await asyncio.gather(*sends, return_exceptions=True)
        assert [type(answer) for answer in answers] == [NotSent] * 3
        await post.send(RECORD, Send(Address("", "fatal"), {}))
    assert len(await asyncio.to_thread(Outside(kafka.address).read, "fatal")) == 1


async def test_a_producer_that_has_failed_between_two_letters_is_replaced(kafka: MockKafka) -> None:
    kafka.create("between")
    kafka.refuse(PRODUCER_ID, 1, NOT_AUTHORIZED)
    async with post_to(kafka) as post:
        await post.open()
        while post.is_open:  # noqa: ASYNC110  # the client tells only its own thread
            await asyncio.sleep(0.05)
        await post.send(RECORD, Send(Address("", "between"), {}))


async def test_nobody_waits_longer_for_an_answer_than_the_timeout(
    kafka: MockKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create("mute")
    monkeypatch.setattr(edge, "MARGIN", -4.9)  # sooner than Kafka's client gives up by itself
    async with post_to(kafka) as post:
        with kafka.down(), pytest.raises(NotSent, match="for mute: no answer"):
            await post.send(RECORD, Send(Address("", "mute"), {}))
