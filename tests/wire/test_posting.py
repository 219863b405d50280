"""Posting on a real broker: every letter gets its own answer, once, whatever becomes of its neighbours."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aio_pika.abc import AbstractChannel
from yarl import URL

from service.core.marks import LETTER
from service.core.plan import Address
from service.edge.fields import encode_marks
from service.edge.post import NotSent, NotTaken, Unroutable
from service.edge.wire.confirmed import Fate
from service.edge.wire.posting import Posting
from service.edge.wire.target import Target
from tests.kit.broker import channel_to, drain
from tests.kit.wire import properties
from tests.servers.proxy import proxied
from tests.servers.waiting import eventually

NOBODY = Address("", "nobody")


@pytest.fixture
async def channel(rabbit_url: str) -> AsyncIterator[AbstractChannel]:
    """A channel to look around with."""
    async with channel_to(rabbit_url) as opened:
        yield opened


@pytest.fixture
async def queue(channel: AbstractChannel) -> AsyncIterator[Address]:
    """A queue of this test's own."""
    name = f"posting-{uuid4().hex}"
    await channel.declare_queue(name, durable=True)
    yield Address("", name)
    await channel.queue_delete(name)


@pytest.fixture
async def posting(rabbit_url: str) -> AsyncIterator[Posting]:
    """Open."""
    posting = Posting(Target.of(rabbit_url), ours=frozenset(), timeout=5, pause=0.2)
    await posting.open()
    yield posting
    await posting.close()


def letter(mark: str) -> bytes:
    """Property bytes with a mark."""
    return properties(headers=encode_marks({LETTER: mark}), delivery_mode=2)


async def fates(posting: Posting, *sends: tuple[Address, str, bytes]) -> list[Fate]:
    """What became of letters sent together; each answer comes once."""
    answers: list[list[Fate]] = [[] for _ in sends]
    for (to, mark, body), heard in zip(sends, answers, strict=True):
        posting.send(to, letter(mark), body, heard.append)
    await eventually(lambda: all(answers), within=10)
    await asyncio.sleep(0)
    assert all(len(heard) == 1 for heard in answers)
    return [heard[0] for heard in answers]


def kinds(found: list[Fate]) -> Counter[type]:
    """How many of each."""
    return Counter(type(fate) for fate in found)


async def test_letters_with_one_id_keep_their_own_fates(
    posting: Posting, channel: AbstractChannel, queue: Address
) -> None:
    """The same id, the same body even: the address tells who came back."""
    sends = [(to, "same", b"body") for to in (queue, NOBODY) * 50]
    found = await fates(posting, *sends)
    assert [isinstance(fate, Unroutable) for fate in found] == [False, True] * 50
    assert len(await drain(channel, queue.routing_key)) == 50


async def test_a_missing_foreign_exchange_does_not_disturb_the_others(
    posting: Posting, channel: AbstractChannel, queue: Address
) -> None:
    lost = Address("no-such-exchange", "k")
    found = await fates(posting, (lost, "lost", b""), *[(queue, f"{n}", b"") for n in range(100)])
    assert isinstance(found[0], Unroutable)
    assert found[1:] == [None] * 100
    await eventually(lambda: posting.link.is_open)
    again = await eventually(lambda: _sent(posting, lost))
    assert isinstance(again, Unroutable)  # the channel of the foreigners is back
    assert len(await drain(channel, queue.routing_key)) == 100


async def _sent(posting: Posting, to: Address) -> Fate:
    (fate,) = await fates(posting, (to, "x", b""))
    assert not isinstance(fate, NotSent)
    return fate


async def test_a_body_of_several_frames_and_one_of_none(
    posting: Posting, channel: AbstractChannel, queue: Address
) -> None:
    large = bytes(range(256)) * 2000
    assert await fates(posting, (queue, "a", large), (queue, "b", b"")) == [None, None]
    assert [message.body for message in await drain(channel, queue.routing_key)] == [large, b""]


async def test_a_full_queue_refuses(posting: Posting, channel: AbstractChannel) -> None:
    name = f"full-{uuid4().hex}"
    await channel.declare_queue(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    full = Address("", name)
    first, second = await fates(posting, (full, "a", b""), (full, "b", b""))
    assert (first, type(second)) == (None, NotTaken)
    await channel.queue_delete(name)


async def test_whatever_has_no_answer_when_the_link_is_cut_is_in_doubt(
    rabbit_url: str, channel: AbstractChannel, queue: Address
) -> None:
    real = URL(rabbit_url)
    async with proxied(real.host or "", real.port or 5672) as proxy:
        target = Target.of(str(real.with_port(proxy.port)))
        posting = Posting(target, ours=frozenset(), timeout=5, pause=0.2)
        await posting.open()
        proxy.black_hole()
        answers: list[Fate] = []
        for n in range(50):
            posting.send(queue, letter(f"{n}"), b"", answers.append)
        proxy.reset()
        proxy.heal()
        await eventually(lambda: len(answers) == 50)
        assert kinds(answers) == {NotSent: 50}
        await eventually(lambda: posting.link.opened == 2)
        assert await fates(posting, (queue, "again", b"")) == [None]
        await posting.close()


async def test_silence_is_given_up_after_the_time_out(rabbit_url: str, queue: Address) -> None:
    real = URL(rabbit_url)
    async with proxied(real.host or "", real.port or 5672) as proxy:
        target = Target.of(str(real.with_port(proxy.port)))
        posting = Posting(target, ours=frozenset(), timeout=0.5, pause=0.2)
        await posting.open()
        proxy.black_hole_for(0)
        (fate,) = await fates(posting, (queue, "a", b""))
        assert "no confirmation within 0.5 s" in str(fate)
        await eventually(lambda: posting.link.opened == 2)
        assert await fates(posting, (queue, "b", b"")) == [None]
        await posting.close()


async def test_a_letter_that_cannot_be_written_shifts_nobodys_answer(
    posting: Posting, channel: AbstractChannel, queue: Address
) -> None:
    """The broker counts what it hears: one that was counted here alone would hand its word to the next."""
    with pytest.raises(ValueError, match="255 bytes"):
        posting.send(Address("", "é" * 255), letter("unwritable"), b"", lambda _fate: None)
    assert posting.unanswered == 0
    sends = [(to, f"{n}", b"") for n, to in enumerate((queue, NOBODY) * 20)]
    found = await fates(posting, *sends)
    assert [isinstance(fate, Unroutable) for fate in found] == [False, True] * 20
    assert len(await drain(channel, queue.routing_key)) == 20
