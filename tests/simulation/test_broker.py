"""RabbitMQ's rules on paper, one by one; where versions differ, each is named."""

from __future__ import annotations

from datetime import timedelta

import pytest
from faststream.rabbit import ExchangeType, QueueType, RabbitExchange

from service.simulation.broker import EPOCH, SimulatedBroker
from service.simulation.flavour import (
    FLAVOURS,
    RABBIT_3_10,
    RABBIT_4_0,
    RABBIT_4_3,
    Flavour,
    flavour_of,
)
from service.simulation.journal import Happening
from service.simulation.letter import Delivery, Letter
from service.topology.tables import (
    DEFAULT,
    Arguments,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

SECOND = timedelta(seconds=1)
DEAD = durable_queue("dead")
CIRCLE = Topology(
    queues=(
        durable_queue("work", expires_to(DEFAULT, "wait", SECOND)),
        durable_queue("wait", expires_to(DEFAULT, "work", SECOND)),
    )
)
EVERY = pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)


def work(arguments: Arguments | None = None, kind: QueueType = QueueType.CLASSIC) -> Topology:
    dies: Arguments = dead_letters_to(DEFAULT, "dead") | (arguments or {})
    return Topology(queues=(durable_queue("work", dies, kind), DEAD))


def taken(broker: SimulatedBroker, queue: str = "work") -> Delivery:
    delivery = broker.get(queue)
    assert delivery is not None
    return delivery


def deaths(letter: Letter) -> list[tuple[object, object, object]]:
    return [(death["queue"], death["reason"], death["count"]) for death in letter.deaths]


def test_a_letter_expires_at_the_head_of_its_queue_only() -> None:
    broker = SimulatedBroker(work())
    broker.publish("", "work", b"slow", properties={"expiration": "5000"})
    broker.publish("", "work", b"quick", properties={"expiration": "1000"})
    broker.advance(3 * SECOND)
    assert [letter.body for letter in broker.letters("work")] == [b"slow", b"quick"]
    broker.advance(2 * SECOND)
    assert [letter.body for letter in broker.letters("dead")] == [b"slow", b"quick"]
    assert all("expiration" not in letter.properties for letter in broker.letters("dead"))


def test_a_letter_given_back_after_its_time_dies_at_once() -> None:
    broker = SimulatedBroker(work({"x-message-ttl": 1000}))
    broker.publish("", "work")
    delivery = taken(broker)
    broker.advance(5 * SECOND)
    assert len(broker.unsettled("work")) == 1
    broker.reject(delivery, requeue=True)
    assert deaths(broker.letters("dead")[0]) == [("work", "expired", 1)]


def test_a_letter_without_any_time_is_for_a_consumer_who_waits_or_for_nobody() -> None:
    broker = SimulatedBroker(work({"x-message-ttl": 0}))
    broker.publish("", "work")
    assert len(broker.letters("dead")) == 1
    broker.consume("work", lambda delivery: None)
    broker.publish("", "work")
    assert len(broker.unsettled("work")) == 1


@EVERY
def test_a_death_is_written_down(flavour: Flavour) -> None:
    broker = SimulatedBroker(work(), flavour)
    broker.publish("", "work")
    broker.advance(1.5 * SECOND)
    broker.reject(taken(broker))
    (letter,) = broker.letters("dead")
    assert letter.headers["x-death"] == [
        {
            "count": 1,
            "reason": "rejected",
            "queue": "work",
            "time": EPOCH + SECOND,
            "exchange": "",
            "routing-keys": ["work"],
        }
    ]
    assert letter.headers["x-first-death-queue"] == "work"
    assert ("x-last-death-queue" in letter.headers) == (flavour is not RABBIT_3_10)


@pytest.mark.parametrize(
    ("flavour", "count"), [(RABBIT_3_10, 42), (RABBIT_4_0, 1), (RABBIT_4_3, 1)]
)
def test_only_rabbitmq_3_believes_the_deaths_a_client_publishes(
    flavour: Flavour, count: int
) -> None:
    broker = SimulatedBroker(work(), flavour)
    forged = [{"queue": "work", "reason": "rejected", "count": 41}]
    broker.publish("", "work", headers={"x-death": forged})
    broker.reject(taken(broker))
    assert deaths(broker.letters("dead")[0]) == [("work", "rejected", count)]


@pytest.mark.parametrize(
    ("flavour", "order"), [(RABBIT_3_10, [4, 2, 0, 1, 3]), (RABBIT_4_0, [4, 3, 2, 1, 0])]
)
def test_only_the_first_of_several_deaths_is_surely_the_newest(
    flavour: Flavour, order: list[int]
) -> None:
    chain = tuple(durable_queue(str(n), expires_to(DEFAULT, str(n + 1), SECOND)) for n in range(5))
    broker = SimulatedBroker(Topology(queues=(*chain, durable_queue("5"))), flavour)
    broker.publish("", "0")
    broker.advance(5 * SECOND)
    assert [queue for queue, _, _ in deaths(broker.letters("5")[0])] == [str(n) for n in order]


@EVERY
def test_a_rejection_saves_a_letter_on_every_round(flavour: Flavour) -> None:
    broker = SimulatedBroker(CIRCLE, flavour)
    broker.publish("", "work")
    for count in range(1, 6):
        broker.reject(taken(broker))
        broker.advance(SECOND)
        assert ("work", "rejected", count) in deaths(broker.letters("work")[0])


@pytest.mark.parametrize(
    ("flavour", "rejections", "ends"),
    [
        (RABBIT_3_10, 0, True),
        (RABBIT_4_0, 0, True),
        (RABBIT_4_3, 0, True),
        (
            RABBIT_3_10,
            1,
            False,
        ),  # turned around, the old rejection is always found: it circles forever
        (RABBIT_4_0, 1, True),
        (RABBIT_4_3, 1, True),
    ],
)
def test_a_loop_of_expiries_alone_ends_the_letter(
    flavour: Flavour, rejections: int, ends: bool
) -> None:
    broker = SimulatedBroker(CIRCLE, flavour)
    broker.publish("", "work")
    for _ in range(rejections):
        broker.reject(taken(broker))
        broker.advance(SECOND)
    broker.advance(100 * SECOND)
    why = [event.why for event in broker.lost()]
    assert why == (["a loop without a rejection in it"] if ends else [])


@pytest.mark.parametrize(
    ("flavour", "limit", "deliveries"),
    [
        (RABBIT_3_10, 2, 3),
        (RABBIT_4_0, 2, 3),
        (RABBIT_4_3, 2, 3),
        (RABBIT_3_10, -1, 1),  # read as "none may come back"
        (RABBIT_4_0, -1, 50),  # read as "no limit"; fifty is where this test gives up
        (RABBIT_3_10, None, 50),
        (RABBIT_4_0, None, 21),
        (RABBIT_4_3, None, 21),
    ],
)
def test_a_quorum_queue_gives_up_at_its_delivery_limit(
    flavour: Flavour, limit: int | None, deliveries: int
) -> None:
    limited: Arguments = {} if limit is None else {"x-delivery-limit": limit}
    broker = SimulatedBroker(work(limited, QueueType.QUORUM), flavour)
    broker.publish("", "work")
    made = 0
    while made < 50 and (delivery := broker.get("work")) is not None:
        broker.reject(delivery, requeue=True)
        made += 1
    assert made == deliveries
    assert len(broker.letters("dead")) == (1 if deliveries < 50 else 0)


@pytest.mark.parametrize(
    ("flavour", "seen"),
    [(RABBIT_3_10, [None, 1, 2]), (RABBIT_4_0, [None, 1, 2]), (RABBIT_4_3, [None, None, None])],
)
def test_rabbitmq_4_3_does_not_count_a_nack(flavour: Flavour, seen: list[int | None]) -> None:
    broker, counts = SimulatedBroker(work(kind=QueueType.QUORUM), flavour), []

    def receive(delivery: Delivery) -> None:
        counts.append(delivery.headers.get("x-delivery-count"))
        if len(counts) < 3:
            broker.nack(delivery)

    broker.publish("", "work")
    broker.consume("work", receive)
    assert counts == seen


def test_on_rabbitmq_4_3_the_count_travels_with_the_letter() -> None:
    topology = Topology(queues=(durable_queue("work", dead_letters_to(DEFAULT, "next")),))
    limited = durable_queue("next", {"x-delivery-limit": 0}, QueueType.QUORUM)
    broker = SimulatedBroker(topology + Topology(queues=(limited,)), RABBIT_4_3)
    broker.publish("", "work")
    broker.reject(taken(broker))
    delivery = taken(broker, "next")
    assert delivery.redelivered
    assert delivery.headers["x-delivery-count"] == 1


def test_classic_queues_keep_places_and_quorum_queues_keep_turns() -> None:
    for kind, order in ((QueueType.CLASSIC, b"123"), (QueueType.QUORUM, b"213")):
        broker = SimulatedBroker(work(kind=kind))
        for body in (b"1", b"2", b"3"):
            broker.publish("", "work", body)
        first, second = taken(broker), taken(broker)
        broker.reject(second, requeue=True)
        broker.reject(first, requeue=True)
        assert b"".join(letter.body for letter in broker.letters("work")) == order


def test_what_nothing_takes_is_told_to_the_publisher() -> None:
    broker = SimulatedBroker(work())
    assert broker.publish("", "work")
    assert not broker.publish("", "nobody")
    assert broker.journal[-1].what is Happening.RETURNED
    with pytest.raises(LookupError, match="no exchange 'absent'"):
        broker.publish("absent", "k")


def test_dead_letters_nothing_takes_are_gone_or_held() -> None:
    for kind, held in ((QueueType.CLASSIC, 0), (QueueType.QUORUM, 1)):
        dies = dead_letters_to(DEFAULT, "nobody", kind)
        broker = SimulatedBroker(Topology(queues=(durable_queue("work", dies, kind),)))
        broker.publish("", "work")
        broker.reject(taken(broker))
        assert (len(broker.held("work")), len(broker.lost())) == (held, 1 - held)


def test_a_lost_connection_gives_everything_back() -> None:
    broker = SimulatedBroker(work(kind=QueueType.QUORUM))
    for body in (b"1", b"2", b"3"):
        broker.publish("", "work", body)
    consumer = broker.consume("work", lambda delivery: None, prefetch=2)
    assert len(broker.unsettled("work")) == 2
    broker.disconnect(consumer)
    assert [letter.body for letter in broker.letters("work")] == [b"1", b"2", b"3"]
    assert taken(broker).redelivered


def test_consumers_take_turns() -> None:
    broker = SimulatedBroker(work())
    seen: list[str] = []
    for name in ("one", "two"):
        broker.consume("work", lambda _, name=name: seen.append(name))  # type: ignore[misc]
    for _ in range(4):
        broker.publish("", "work")
    assert seen == ["one", "two", "one", "two"]


def test_a_delivery_is_settled_once() -> None:
    broker = SimulatedBroker(work())
    broker.publish("", "work")
    delivery = taken(broker)
    broker.ack(delivery)
    with pytest.raises(LookupError, match="settled already"):
        broker.ack(delivery)


def test_a_fanout_makes_a_copy_for_each_queue_and_each_dies_its_own_death() -> None:
    fanout = RabbitExchange("all", type=ExchangeType.FANOUT)
    one, two = (durable_queue(name, dead_letters_to(DEFAULT, "dead")) for name in ("one", "two"))
    broker = SimulatedBroker(
        Topology((fanout,), (one, two, DEAD), (Binding(fanout, one), Binding(fanout, two)))
    )
    broker.publish("all", "k")
    for queue in ("two", "one"):
        broker.reject(taken(broker, queue))
    assert [deaths(letter) for letter in broker.letters("dead")] == [
        [("two", "rejected", 1)],
        [("one", "rejected", 1)],
    ]


@pytest.mark.parametrize(
    ("version", "flavour"),
    [
        ("3.10.8", RABBIT_3_10),
        ("3.13.7", RABBIT_3_10),
        ("4.0.5", RABBIT_4_0),
        ("4.3.6", RABBIT_4_3),
    ],
)
def test_a_server_says_which_flavour_it_is(version: str, flavour: Flavour) -> None:
    assert flavour_of(version) is flavour
