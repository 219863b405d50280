"""Tables: made, joined and asked."""

from __future__ import annotations

from datetime import timedelta

import pytest
from faststream.rabbit import ExchangeType, QueueType, RabbitExchange, RabbitQueue

from service.topology.routing import reached
from service.topology.tables import (
    DEFAULT,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

ONE, TWO = durable_queue("one"), durable_queue("two")
TOPIC = RabbitExchange("topic", type=ExchangeType.TOPIC)
LEAF = RabbitExchange("leaf", type=ExchangeType.FANOUT, bind_to=TOPIC, routing_key="a.#")
HEADERS = RabbitExchange("headers", type=ExchangeType.HEADERS)
RED = RabbitQueue("red", bind_arguments={"x-match": "all", "colour": "red", "size": 1})
ANY = RabbitQueue("any", bind_arguments={"x-match": "any", "colour": "red", "size": 1})
TOPOLOGY = Topology(
    (TOPIC, LEAF, HEADERS),
    (ONE, TWO, RED, ANY),
    (
        Binding(TOPIC, ONE, "a.*"),
        Binding(TOPIC, ONE, "#"),
        Binding(LEAF, TWO),
        Binding(HEADERS, RED),
        Binding(HEADERS, ANY),
    ),
)


def test_a_wait_is_in_milliseconds_and_the_default_exchange_has_no_name() -> None:
    assert expires_to(DEFAULT, "one", timedelta(seconds=1.5)) == {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "one",
        "x-message-ttl": 1500,
    }


def test_a_quorum_queue_keeps_its_dead_letters_until_they_are_taken() -> None:
    arguments = dead_letters_to(TOPIC, kind=QueueType.QUORUM)
    assert arguments["x-dead-letter-strategy"] == "at-least-once"
    assert arguments["x-overflow"] == "reject-publish"
    assert durable_queue("q", arguments, QueueType.QUORUM).arguments["x-queue-type"] == "quorum"


def test_what_stands_in_both_stands_once() -> None:
    assert TOPOLOGY + TOPOLOGY == TOPOLOGY


def test_asking_for_what_is_not_there() -> None:
    assert TOPOLOGY.queue("one") is ONE
    assert TOPOLOGY.exchange("") is DEFAULT
    with pytest.raises(LookupError, match="no queue 'three' in this topology"):
        TOPOLOGY.queue("three")
    with pytest.raises(LookupError, match="no exchange 'three' in this topology"):
        TOPOLOGY.exchange("three")


@pytest.mark.parametrize(
    ("exchange", "keys", "headers", "queues"),
    [
        ("topic", ("b",), {}, {"one"}),
        ("topic", ("a.b",), {}, {"one", "two"}),  # once, though two bindings match
        ("topic", ("b", "a.x"), {}, {"one", "two"}),  # the second key is a CC
        ("", ("two",), {}, {"two"}),
        ("", ("three",), {}, set()),
        ("headers", ("",), {"colour": "red", "size": 1}, {"red", "any"}),
        ("headers", ("",), {"colour": "red"}, {"any"}),
        ("headers", ("",), {}, set()),
    ],
)
def test_which_queues_a_letter_reaches(
    exchange: str, keys: tuple[str, ...], headers: dict[str, object], queues: set[str]
) -> None:
    assert {queue.name for queue in reached(TOPOLOGY, exchange, keys, headers)} == queues
