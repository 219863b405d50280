"""One small topology per fault, and the same one put right."""

from __future__ import annotations

from datetime import timedelta

import pytest
from faststream.rabbit import ExchangeType, QueueType, RabbitExchange

from service.topology.faults import FaultKind, faults
from service.topology.tables import (
    DEFAULT,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

TOPIC = RabbitExchange("topic", type=ExchangeType.TOPIC)
DIRECT = RabbitExchange("direct")
FANOUT = RabbitExchange("fanout", type=ExchangeType.FANOUT)
FOREIGN = RabbitExchange("foreign", declare=False)
PLAIN = durable_queue("plain")
SOON = timedelta(seconds=1)


def waiting(name: str, to: RabbitExchange, key: str | None) -> Topology:
    return Topology(queues=(durable_queue(name, expires_to(to, key, SOON)),))


def dying(to: RabbitExchange, key: str | None = None, name: str = "work") -> Topology:
    return Topology(queues=(durable_queue(name, dead_letters_to(to, key)),))


BOUND = Topology((TOPIC,), (PLAIN,), (Binding(TOPIC, PLAIN, "a.#"),))
QUORUM = durable_queue("q", dead_letters_to(DEFAULT, "plain", QueueType.QUORUM), QueueType.QUORUM)
HALF = durable_queue(
    "q", {"x-dead-letter-exchange": "", "x-dead-letter-strategy": "at-least-once"}, QueueType.QUORUM
)
CLASSIC = durable_queue("q", {"x-dead-letter-strategy": "at-least-once"})
LONG = "k" * 256

CASES: list[tuple[str, Topology, tuple[tuple[RabbitExchange, str], ...], set[FaultKind]]] = [
    ("a key that is bound", BOUND, ((TOPIC, "a.b"),), set()),
    ("a key that is not", BOUND, ((TOPIC, "b"),), {FaultKind.UNROUTABLE}),
    ("a queue by its name", BOUND, ((DEFAULT, "plain"),), set()),
    ("a queue that is not there", BOUND, ((DEFAULT, "absent"),), {FaultKind.UNROUTABLE}),
    ("an exchange that is not there", BOUND, ((DIRECT, "a"),), {FaultKind.MISSING_EXCHANGE}),
    ("somebody else's exchange", Topology((FOREIGN,)), ((FOREIGN, "a"),), set()),
    ("dead letters to no exchange", dying(DIRECT), (), {FaultKind.MISSING_EXCHANGE}),
    ("dead letters to somebody else", dying(FOREIGN) + Topology((FOREIGN,)), (), set()),
    ("dead letters to a queue", dying(DEFAULT, "plain") + BOUND, (), set()),
    ("dead letters to no queue", dying(DEFAULT, "absent"), (), {FaultKind.DEAD_END}),
    ("dead letters nothing takes", dying(TOPIC, "b") + BOUND, (), {FaultKind.DEAD_END}),
    ("dead letters under any key, taken", dying(TOPIC) + BOUND, (), set()),
    (
        "dead letters under a key that is known",
        dying(TOPIC) + BOUND,
        ((DEFAULT, "work"),),
        {FaultKind.DEAD_END},
    ),
    (
        "dead letters to a bare exchange",
        dying(FANOUT) + Topology((FANOUT,)),
        (),
        {FaultKind.DEAD_END},
    ),
    (
        "a blank key on a topic exchange",
        Topology((TOPIC,), (PLAIN,), (Binding(TOPIC, PLAIN),)),
        (),
        {FaultKind.BLANK_KEY},
    ),
    (
        "a blank key on a fanout exchange",
        Topology((FANOUT,), (PLAIN,), (Binding(FANOUT, PLAIN),)),
        (),
        set(),
    ),
    (
        "two queues that wait for each other",
        waiting("one", DEFAULT, "two") + waiting("two", DEFAULT, "one"),
        (),
        {FaultKind.LOOP},
    ),
    (
        "a queue that waits for itself",
        waiting("one", DEFAULT, None),
        ((DEFAULT, "one"),),
        {FaultKind.LOOP},
    ),
    ("the same, with its key", waiting("one", DEFAULT, "one"), (), {FaultKind.LOOP}),
    (
        "a loop with a consumer in it",
        waiting("one", DEFAULT, "work") + dying(DEFAULT, "one"),
        (),
        set(),
    ),
    ("at least once", Topology(queues=(QUORUM, PLAIN)), (), set()),
    ("half of at least once", Topology(queues=(HALF, PLAIN)), (), {FaultKind.AT_MOST_ONCE}),
    ("at least once on a classic queue", Topology(queues=(CLASSIC,)), (), {FaultKind.AT_MOST_ONCE}),
    ("two queues of one name", dying(DEFAULT, "plain", "plain") + BOUND, (), {FaultKind.CONFLICT}),
    ("the same queue twice", BOUND + BOUND, (), set()),
    (
        "a queue nobody declared",
        Topology((TOPIC,), (), (Binding(TOPIC, PLAIN, "a"),)),
        (),
        {FaultKind.UNDECLARED},
    ),
    (
        "an exchange nobody declared",
        Topology((), (PLAIN,), (Binding(TOPIC, PLAIN, "a"),)),
        (),
        {FaultKind.UNDECLARED},
    ),
    (
        "a key of 256 bytes",
        Topology((TOPIC,), (PLAIN,), (Binding(TOPIC, PLAIN, LONG),)),
        (),
        {FaultKind.TOO_LONG},
    ),
]


@pytest.mark.parametrize(
    ("topology", "sends", "kinds"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_fault_is_found_and_no_other(
    topology: Topology, sends: tuple[tuple[RabbitExchange, str], ...], kinds: set[FaultKind]
) -> None:
    assert {fault.kind for fault in faults(topology, sends)} == kinds


def test_a_fault_says_what_where_and_what_to_do() -> None:
    (fault,) = faults(dying(DIRECT))
    assert str(fault) == (
        "exchange 'direct' is not there and queue 'work' sends its dead letters there: they are gone;"
        " declare it, or name it with declare=False if somebody else does"
    )
