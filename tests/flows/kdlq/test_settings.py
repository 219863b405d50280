"""Consumers from the settings: what is wrong is said in a sentence with its key, and nothing starts."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from faststream.confluent import KafkaBroker
from faststream.rabbit import RabbitBroker

from service import KDLQ, Message, Status
from service.flows.kdlq.config import KDLQConfig
from service.flows.room import DeadQueue
from service.rooms import rooms_of
from service.settings import BadSettings, load, shown
from tests.kit.process import ROOT

TEAM = "tests.flows.kdlq.team"
ONE = f'source="a", dlq="a.dlq", handler="{TEAM}:handle"'
LOOPS = "a limit for max_kills, for its DLQ is one of those it takes messages of"
KAFKA = f"{ONE}, broker='kafka', group='g'"


@pytest.mark.parametrize(
    ("consumers", "said"),
    [
        (
            f'{{source="a", handler="{TEAM}:handle"}}',
            "kdlq.consumers.0.dlq: is missing",
        ),
        (
            f"{{{ONE}, max_kill=1}}",
            "kdlq.consumers.0.max_kill: there is no such setting; did you mean"
            " kdlq.consumers.0.max_kills?",
        ),
        (
            f"{{{ONE}, max_redeliveries=-2}}",
            "kdlq.consumers.0.max_redeliveries: given -2, expected",
        ),
        (f"{{{ONE}, broker='nats'}}", "kdlq.consumers.0.broker: given 'nats', expected"),
        (f"{{{ONE}, redelivery='kdlq.skipped'}}", "kdlq.consumers.0.redelivery: given"),
        (f"{{{ONE}, group='g'}}", "group and wire with kafka only"),
        (f"{{{ONE}, broker='kafka'}}", "expected a group, which shares the topic's messages"),
        (
            f"{{{KAFKA}, redelivery_delay='1s'}}",
            "no redelivery_delay: Kafka has nothing to wait in",
        ),
        (f"{{{KAFKA}, redelivery='a b'}}", "topics of letters, digits, ., _ and -, not a b"),
        (f"{{{KAFKA}}}", "expected kdlq.kafka.servers, for a consumer is on kafka"),
        (f"{{{ONE}}}, {{{ONE}}}", "each source and redelivery once; a is there twice"),
        (
            f"{{{ONE}, redelivery='r'}}, "
            f'{{source="b", dlq="b.dlq", redelivery="r", handler="{TEAM}:handle"}}',
            "each source and redelivery once; r is there twice",
        ),
        (
            f"{{{KAFKA}, redelivery='r'}}, "
            f'{{source="b", dlq="b.dlq", redelivery="r", broker="kafka", group="h", '
            f'handler="{TEAM}:handle"}}',
            "each source and redelivery once; r is there twice",
        ),
        (
            f"{{{KAFKA}, redelivery='r'}}, "
            f'{{source="r", dlq="b.dlq", broker="kafka", group="g", handler="{TEAM}:handle"}}',
            "each source and redelivery once; r is there twice",
        ),
        (f"{{{ONE.replace('a.dlq', 'a')}}}", LOOPS),
        (f"{{{ONE}, redelivery='a.dlq'}}", LOOPS),
    ],
)
def test_a_fault_says_its_key(tmp_path: Path, consumers: str, said: str) -> None:
    with pytest.raises(BadSettings) as bad:
        load(tmp_path, {"DLO_KDLQ__CONSUMERS": f"[{consumers}]"})
    (line,) = str(bad.value).splitlines()
    assert line.startswith("kdlq")
    assert said in line


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ("nowhere.at_all:f", "nowhere.at_all cannot be imported: ModuleNotFoundError"),
        (f"{TEAM}:missing", f"there is no missing in {TEAM}"),
        (f"{TEAM}:NUMBER", f"{TEAM}:NUMBER is not a function"),
        (f"{TEAM}:two", f"{TEAM}:two must take one parameter: the message"),
    ],
)
def test_a_handler_that_is_not_there(tmp_path: Path, handler: str, said: str) -> None:
    consumers = f'[{{source="a", dlq="b", handler="{handler}"}}]'
    settings = load(tmp_path, {"DLO_KDLQ__CONSUMERS": consumers, "DLO_FLOWS": '["kdlq"]'})
    with pytest.raises(BadSettings) as bad:
        rooms_of(settings, lambda _key: None)
    assert str(bad.value).startswith(f"kdlq.consumers.0.handler: given {handler!r}: {said}")


def test_the_room_says_where_its_dead_letters_lie(tmp_path: Path) -> None:
    second = f'source="a.dlq", dlq="graveyard", handler="{TEAM}:handle", max_kills=1'
    given = {"DLO_KDLQ__CONSUMERS": f"[{{{ONE}}}, {{{second}}}]", "DLO_FLOWS": '["kdlq"]'}
    (room,) = rooms_of(load(tmp_path, given), lambda _key: None)
    assert room.dead == (DeadQueue("graveyard"), DeadQueue("kdlq.skipped", discarded=True))
    declared = {queue.name: queue.declare for queue in room.topology.queues}
    assert declared == {"a": False, "a.dlq": False, "graveyard": False, "kdlq.skipped": True}


def test_without_consumers_the_room_is_empty(tmp_path: Path) -> None:
    (room,) = rooms_of(load(tmp_path, {"DLO_FLOWS": '["kdlq"]'}), lambda _key: None)
    assert (room.topology.queues, room.dead, room.work) == ((), (), ())


def test_what_the_client_of_kafka_is_told_is_never_shown(tmp_path: Path) -> None:
    client = '{ "sasl.password" = "hunter2" }'
    settings = load(tmp_path, {"DLO_KDLQ__KAFKA__CLIENT": client})
    assert "hunter2" not in repr(shown(settings)) + repr(settings)


def test_what_is_promised_cannot_be_configured_away(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"given 'acks', expected a property of Kafka's client"):
        load(tmp_path, {"DLO_KDLQ__KAFKA__CLIENT": '{ "acks" = "1" }'})


def test_without_the_extra_all_else_works_and_the_error_names_it() -> None:
    command = [sys.executable, "-m", "tests.flows.kdlq.without_extra", ONE, KAFKA]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    extra = "Kafka needs the extra [kafka]: pip install 'dead-letter-office[kafka]'"
    assert done.stdout.splitlines() == [extra, f"kdlq.consumers.0.broker: {extra}"], done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"servers": ""}, "servers is empty"),
        ({"servers": "amqp://a/,amqp://b/"}, "several RabbitMQ URLs"),
        ({"servers": "k:9092", "redelivery_delay": timedelta(1)}, "redelivery_delay is RabbitMQ's"),
        ({"dlq": ""}, "dlq is empty"),
        ({"wire": "xml"}, "wire is 'xml', expected 'text' or 'java'"),
        ({"listeners": (type("L", (), {"on_skipped": print})(),)}, "a listener has on_skipped"),
    ],
)
def test_a_config_that_cannot_be_used(given: dict[str, object], said: str) -> None:
    fields: dict[str, object] = {"servers": "amqp://127.0.0.1/", "dlq": "x.dlq", **given}
    with pytest.raises(ValueError, match=said):
        KDLQConfig(**fields)  # type: ignore[arg-type]  # that is what is tested


def test_a_redelivery_queue_has_one_handler() -> None:
    kdlq = KDLQ(KDLQConfig(servers="amqp://127.0.0.1/", dlq="x.dlq", redelivery="x.again"))
    broker = RabbitBroker()
    kdlq.subscriber(broker, "x")(_take)
    kdlq.subscriber(broker, "y")(_take)
    with pytest.raises(ValueError, match=r"x\.again.*a KDLQ of its own"):
        kdlq.subscriber(broker, "z")(_take_too)
    assert kdlq.consumer(_take_too, "x.again")  # by hand nothing is subscribed to


def test_a_redelivery_topic_has_one_group() -> None:
    kdlq = KDLQ(KDLQConfig(servers="127.0.0.1:9", dlq="x.dlq", redelivery="x.again"))
    broker = KafkaBroker()
    kdlq.subscriber(broker, "x", group="one")(_take)
    with pytest.raises(ValueError, match=r"x\.again.*a KDLQ of its own"):
        kdlq.subscriber(broker, "y", group="two")(_take)


@pytest.mark.parametrize(
    ("source", "given"),
    [("x.dlq", {}), ("x", {"redelivery": "x.dlq"}), ("x.dlq", {"max_kills": -2})],
)
def test_a_consumer_of_its_own_dlq_needs_a_limit(source: str, given: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"servers": "amqp://127.0.0.1/", "dlq": "x.dlq", **given}
    with pytest.raises(ValueError, match=r"max_kills.*x\.dlq"):
        KDLQ(KDLQConfig(**fields)).consumer(_take, source)
    assert KDLQ(KDLQConfig(**{**fields, "max_kills": 1})).consumer(_take, source)


def _take(_message: Message) -> Status:
    """A handler."""
    return Status.OK


def _take_too(_message: Message) -> Status:
    """Another."""
    return Status.OK
