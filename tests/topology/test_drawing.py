"""Drawings and tables of a small topology, word for word."""

from __future__ import annotations

from datetime import timedelta

from faststream.rabbit import ExchangeType, RabbitExchange

from service.topology.drawing import markdown, mermaid, tables
from service.topology.tables import (
    DEFAULT,
    Binding,
    Topology,
    dead_letters_to,
    durable_queue,
    expires_to,
)

EVENTS = RabbitExchange("events", type=ExchangeType.TOPIC)
AUDIT = RabbitExchange("audit", type=ExchangeType.FANOUT, bind_to=EVENTS, routing_key="#")
WORK = durable_queue("work", dead_letters_to(DEFAULT, "wait"))
WAIT = durable_queue("wait", expires_to(EVENTS, "retry.#.1", timedelta(seconds=90)))
LOST = durable_queue("lost", dead_letters_to(RabbitExchange("absent")))
TOPOLOGY = Topology((EVENTS, AUDIT), (WORK, WAIT, LOST), (Binding(EVENTS, WORK, "order.#"),))


def test_the_drawing() -> None:
    assert mermaid(TOPOLOGY) == (
        "flowchart LR\n"
        '    x0(["events<br/>topic"])\n'
        '    x1(["audit<br/>fanout"])\n'
        '    x2(["absent<br/>not declared"])\n'
        '    q0["work"]\n'
        '    q1["wait<br/>waits 1m30s"]\n'
        '    q2["lost"]\n'
        '    x0 -->|"order.#35;"| q0\n'
        '    x0 -->|"#35;"| x1\n'
        "    q0 -.-> q1\n"
        '    q1 -.->|"retry.#35;.1"| x0\n'
        "    q2 -.-> x2\n"
    )


def test_the_tables() -> None:
    exchanges, queues, bindings = tables(TOPOLOGY)
    assert exchanges.rows == (("events", "topic"), ("audit", "fanout"))
    assert queues.rows[1] == (
        "wait",
        "x-queue-type: classic, x-dead-letter-exchange: events,"
        " x-dead-letter-routing-key: retry.#.1, x-message-ttl: 90000",
    )
    assert markdown(bindings) == (
        "| Exchange | Type | Queue | Routing Key |\n"
        "| --- | --- | --- | --- |\n"
        "| events | topic | work | order.# |"
    )
