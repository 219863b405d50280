"""Small worlds made at random: queues that wait or are consumed, exchanges, letters and their fates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from faststream.rabbit import ExchangeType, QueueType, RabbitExchange, RabbitQueue
from hypothesis import strategies as st

from service.topology.tables import AT_LEAST_ONCE, Arguments, Binding, Topology, durable_queue

DEEPEST = 4
KEYS = ("a", "b", "a.b", "a.b.c", "", "retry.#.1", "@0", "@1", "@2")
PATTERNS = (*KEYS, "#", "#", "*", "a.*", "a.#", "#.b", "*.b.#", "retry.#.1", "a.#.c", "#.#", "*.#")


class Fate(StrEnum):
    """What a consumer does with a delivery."""

    ACK = "ack"
    REJECT = "reject"
    NACK = "nack"
    REJECT_BACK = "reject, requeue"
    NACK_BACK = "nack, requeue"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """A queue: with a `ttl` letters wait in it, without one a consumer decides by `fates`."""

    kind: QueueType
    ttl: int | None
    exchange: str | None
    key: str | None
    at_least_once: bool
    limit: int | None
    match: str
    fates: tuple[Fate, ...]


@dataclass(frozen=True, slots=True)
class LetterPlan:
    """A letter: where it is sent, under which key, with which headers."""

    exchange: str
    key: str
    headers: tuple[tuple[str, object], ...] = ()
    expiration: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One world and the letters sent into it. `@n` stands for the n-th queue or exchange."""

    queues: tuple[QueuePlan, ...]
    exchanges: tuple[ExchangeType, ...]
    bindings: tuple[tuple[int, int, str], ...]
    letters: tuple[LetterPlan, ...]


@dataclass(frozen=True, slots=True)
class World:
    """A case under names of its own."""

    case: Case
    prefix: str

    def queue(self, number: int) -> str:
        """The name of the n-th queue."""
        return f"{self.prefix}-q{number}"

    def exchange(self, name: str) -> str:
        """`""`, an exchange that is not there, or the name of the n-th one."""
        return f"{self.prefix}-x{name[1:]}" if name.startswith("@") else name

    def key(self, key: str) -> str:
        """A key, or the name of the n-th queue."""
        return self.queue(int(key[1:])) if key.startswith("@") else key

    def topology(self) -> Topology:
        """What stands on the broker."""
        exchanges = [
            RabbitExchange(self.exchange(f"@{n}"), type=t)
            for n, t in enumerate(self.case.exchanges)
        ]
        queues = [self._row(n, plan) for n, plan in enumerate(self.case.queues)]
        bindings = [
            Binding(exchanges[x], queues[q], self.key(key)) for x, q, key in self.case.bindings
        ]
        return Topology(tuple(exchanges), tuple(queues), tuple(dict.fromkeys(bindings)))

    def consumed(self) -> dict[str, tuple[Fate, ...]]:
        """The queues with a consumer, and what it does."""
        return {
            self.queue(n): plan.fates for n, plan in enumerate(self.case.queues) if plan.ttl is None
        }

    def headers(self, letter: LetterPlan) -> dict[str, object]:
        """The headers of a letter, names filled in."""
        return {name: self._filled(value) for name, value in letter.headers}

    def _row(self, number: int, plan: QueuePlan) -> RabbitQueue:
        arguments: Arguments = {}
        if plan.exchange is not None:
            arguments["x-dead-letter-exchange"] = self.exchange(plan.exchange)
            if plan.key is not None:
                arguments["x-dead-letter-routing-key"] = self.key(plan.key)
            if plan.at_least_once and plan.kind is QueueType.QUORUM:
                arguments |= AT_LEAST_ONCE
        if plan.ttl is not None:
            arguments["x-message-ttl"] = plan.ttl
        if plan.limit is not None and plan.kind is QueueType.QUORUM:
            arguments["x-delivery-limit"] = plan.limit
        row = durable_queue(self.queue(number), arguments, plan.kind)
        row.bind_arguments = {"x-match": plan.match, "colour": "red", "size": 1}
        return row

    def _filled(self, value: object) -> object:
        match value:
            case str():
                return self.key(value)
            case tuple():
                return [self._filled(item) for item in value]
            case frozenset():
                return {name: self._filled(item) for name, item in value}
            case _:
                return value


def fate_of(fates: tuple[Fate, ...], headers: Mapping[str, object], redelivered: bool) -> Fate:
    """What to do with a delivery, from the delivery alone: copies of a letter need no names."""
    depth = _depth(headers)
    if depth >= DEEPEST:
        return Fate.KEEP
    fate = fates[min(depth, len(fates) - 1)]
    if (
        fate in (Fate.REJECT_BACK, Fate.NACK_BACK)
        and redelivered
        and not _few_returns(fate, headers)
    ):
        return Fate.REJECT if depth % 2 else Fate.NACK
    return fate


def _depth(headers: Mapping[str, object]) -> int:
    deaths = headers.get("x-death")
    return sum(death["count"] for death in deaths) if isinstance(deaths, list) else 0


def _few_returns(fate: Fate, headers: Mapping[str, object]) -> bool:
    # RabbitMQ 4.3 does not count a nack: a consumer that waits for the count would never end.
    count = headers.get("x-delivery-count")
    return fate is Fate.REJECT_BACK and isinstance(count, int) and count < 3


def _forged(queue: str, reason: str, count: int) -> tuple[str, object]:
    table = frozenset({("queue", queue), ("reason", reason), ("count", count), ("exchange", "far")})
    return ("x-death", (table,))


KINDS = st.sampled_from([QueueType.CLASSIC, QueueType.CLASSIC, QueueType.QUORUM])
TO_A_QUEUE = st.tuples(st.just(""), st.sampled_from(["@0", "@1", "@2"]))
TO_AN_EXCHANGE = st.tuples(st.sampled_from(["@0", "@1"]), st.sampled_from(KEYS))
NOWHERE = st.sampled_from([("", "a"), ("nowhere", "a")])
DEATHS = st.one_of(
    TO_A_QUEUE, TO_AN_EXCHANGE, TO_A_QUEUE, TO_AN_EXCHANGE, NOWHERE, st.just((None, None))
)
FATES = st.lists(
    st.sampled_from([Fate.REJECT, Fate.REJECT, Fate.REJECT_BACK, *Fate]),
    min_size=1,
    max_size=DEEPEST + 1,
).map(tuple)


@st.composite
def queues(draw: st.DrawFn) -> QueuePlan:
    """A queue whose dead letters mostly go on to somewhere."""
    exchange, key = draw(DEATHS)
    return QueuePlan(
        kind=draw(KINDS),
        ttl=draw(st.sampled_from([None, None, 10, 20, 30])),
        exchange=exchange,
        key=draw(st.sampled_from([key, key, None])),
        at_least_once=draw(st.booleans()),
        limit=draw(st.sampled_from([None, None, 0, 1, 2])),
        match=draw(st.sampled_from(["all", "any"])),
        fates=draw(FATES),
    )


HEADERS = st.one_of(
    st.just(()),
    st.just((("colour", "red"),)),
    st.just((("colour", "red"), ("size", 1))),
    st.just((("CC", ("b", "@1")),)),
    st.just((("BCC", ("@2", "a")),)),
    st.builds(
        lambda *forged: (_forged(*forged),),
        st.sampled_from(["@0", "@1", "elsewhere"]),
        st.sampled_from(["rejected", "expired"]),
        st.integers(1, 2),
    ),
)
LETTERS = st.builds(
    lambda to, headers, expiration: LetterPlan(to[0], to[1], headers, expiration),
    st.one_of(TO_A_QUEUE, TO_AN_EXCHANGE, TO_AN_EXCHANGE),
    HEADERS,
    st.sampled_from([None, None, "60000"]),
)
TYPES = st.sampled_from(
    [
        ExchangeType.TOPIC,
        ExchangeType.TOPIC,
        ExchangeType.DIRECT,
        ExchangeType.FANOUT,
        ExchangeType.HEADERS,
    ]
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A small world: two exchanges, three to five queues, the first of them with a consumer."""
    first = replace(draw(queues()), ttl=None)
    others = draw(st.lists(queues(), min_size=2, max_size=4))
    binding = st.tuples(st.integers(0, 1), st.integers(0, len(others)), st.sampled_from(PATTERNS))
    return Case(
        queues=(first, *others),
        exchanges=(draw(TYPES), draw(TYPES)),
        bindings=tuple(draw(st.lists(binding, min_size=3, max_size=8))),
        letters=tuple(draw(st.lists(LETTERS, min_size=2, max_size=5))),
    )
