"""The drill: three letters through the running service, watched from outside to their ends."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from aiormq.exceptions import AMQPError
from faststream.rabbit import QueueType

from service.core.marks import DUE, LETTER, REASON, RETRY_COUNT
from service.core.plan import Address, Send
from service.edge import tolerance
from service.edge.letter import Letter
from service.edge.post import NotSent, RabbitPost, Unroutable
from service.edge.sentences import place, sentence
from service.edge.tap import Heard, Missing, Tap, tap_on
from service.flows.dlq_processor import topology as tables
from service.office.endings import Accepted, Died, Event, Sent, Unended, Waits

KIND = QueueType.CLASSIC  # the names are the same for either kind
TAKEN, DEAD = tables.retry_queue(KIND).name, tables.dead_queue(KIND).name
ANSWERS_WITHIN, LOOKS_EVERY = 10.0, 0.2
# Of the delays only the drill's own keys: to the service our ear is a queue like any other, so that
# a letter whose delay queue is gone would seem to have arrived; nobody else's may be risked for that.
HEARD = (
    Address(tables.DELAY.name, "binding.rk.test.#"),
    tables.DEAD_ADDRESS,
    Address(tables.DEAD.name, tables.DEAD.name),
)
CURE = "is the service running there (just up), and its drill on (dlq_processor.drill)?"


class NoDrill(Exception):
    """The drill cannot be held; says why, and what to do."""


def margin(tiers: Sequence[timedelta]) -> timedelta:
    """How long after a delivery nothing may fail before it counts as accepted."""
    return min(max(min(tiers) / 2, timedelta(seconds=1)), timedelta(seconds=5))


async def drill(
    url: str, tiers: Sequence[timedelta], within: timedelta
) -> AsyncGenerator[Event, None]:
    """Send the three letters and tell what becomes of them; NoDrill where that cannot be."""
    tolerance.install()  # we hear every dead letter, whatever its headers are
    deadline = time.monotonic() + within.total_seconds()
    letters = {letter.id: letter for letter in _letters()}
    with _explained(url):
        async with tap_on(url, within=ANSWERS_WITHIN) as tap:
            await _is_open(tap, letters.values(), url)
            await tap.listen(lambda heard: heard.headers.get(LETTER) in letters, *HEARD)
            await _send(url, letters.values())
            for letter in letters.values():
                yield Sent(letter.key, letter.id)
            while letters and time.monotonic() < deadline:
                async for event in _next(tap, letters, tiers):
                    yield event
            for letter in letters.values():
                yield Unended(letter.key, letter.retries)


@dataclass(slots=True)
class _Travelling:
    """A letter on its way: how often it was retried, since when it may be at rest, and in which queues."""

    key: str
    queues: set[str]
    id: str = field(default_factory=lambda: f"drill-{uuid4().hex}")
    retries: int = 0
    since: float = field(default_factory=time.monotonic)

    def waits(self, heard: Heard, tiers: Sequence[timedelta]) -> Waits:
        """It failed, and comes back when the service says so; or later, where our clocks disagree."""
        tier = int(heard.to.routing_key.rpartition(".")[2])
        known = tiers[tier - 1].total_seconds() if tier <= len(tiers) else 0.0
        self.since = time.monotonic() + max(known, _number(heard, DUE) / 1000 - time.time())
        self.queues.add(tables.returned_queue(tier, KIND).name)
        self.retries = _number(heard, RETRY_COUNT)
        return Waits(self.key, self.retries, tier)

    async def is_accepted(self, tap: Tap, quiet: timedelta) -> bool:
        """Its silence means success: it had time to fail, and no letter waits for the service."""
        if time.monotonic() < self.since + quiet.total_seconds():
            return False
        depths = [await tap.depth(queue) for queue in self.queues]
        return all(depth.consumers and not depth.letters for depth in depths)


async def _next(
    tap: Tap, letters: dict[str, _Travelling], tiers: Sequence[timedelta]
) -> AsyncIterator[Event]:
    heard = await tap.next(within=LOOKS_EVERY)
    if heard is not None:
        letter = letters.get(str(heard.headers[LETTER]))
        if letter is None:  # a second copy of what has ended
            return
        if heard.to.exchange == tables.DELAY.name:
            yield letter.waits(heard, tiers)
        else:
            del letters[letter.id]
            yield Died(letter.key, _number(heard, RETRY_COUNT), str(heard.headers.get(REASON, "")))
        return
    for letter in tuple(letters.values()):
        if await letter.is_accepted(tap, margin(tiers)):
            del letters[letter.id]
            yield Accepted(letter.key, letter.retries)


def _letters() -> Iterator[_Travelling]:
    for queue in (tables.pass_queue, tables.fail_queue, tables.fail_pass_queue):
        yield _Travelling(queue(KIND).routing_key, {queue(KIND).name, TAKEN})


async def _is_open(tap: Tap, letters: Iterable[_Travelling], url: str) -> None:
    """What the drill needs stands there, and somebody consumes."""
    await tap.find(tables.DRILL.name)
    await tap.depth(DEAD)
    for queue in sorted(queue for letter in letters for queue in letter.queues):
        if not (await tap.depth(queue)).consumers:
            raise NoDrill(f"{place(url)}: nobody consumes from {queue}; {CURE}")


async def _send(url: str, letters: Iterable[_Travelling]) -> None:
    post = RabbitPost(url, timeout=ANSWERS_WITHIN, ours=frozenset({tables.DRILL.name}))
    try:
        await post.open()
        for letter in letters:
            said = {"content_type": "application/json", "message_id": letter.id}
            to = Send(Address(tables.DRILL.name, letter.key), {LETTER: letter.id})
            await post.send(Letter(b'{"drill": true}', {}, said), to)
            letter.since = time.monotonic()
    finally:
        await post.close()


def _number(heard: Heard, name: str) -> int:
    value = heard.headers.get(name)
    return value if isinstance(value, int) else 0


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except Missing as missing:
        raise NoDrill(f"{place(url)} has no {missing}; {CURE}") from None
    except (NotSent, Unroutable) as lost:
        raise NoDrill(f"{place(url)} did not take the drill's letters: {lost}") from None
    except (AMQPError, OSError, RuntimeError) as error:
        raise NoDrill(sentence(error, url)) from None
