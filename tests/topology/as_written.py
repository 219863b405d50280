"""The tables of the DLQ processor's document, row by row, exactly as they are written there."""

from __future__ import annotations

from faststream.rabbit import ExchangeType, RabbitExchange

from service.topology.tables import Arguments, Binding, Topology, durable_queue

TO_RETRY: Arguments = {
    "x-dead-letter-exchange": "retry-exchange",
    "x-dead-letter-routing-key": "retry-routing-key",
}


def _delay(tier: int, ttl: int) -> Arguments:
    return {
        "x-dead-letter-exchange": f"retry-exchange-{tier}",
        "x-dead-letter-routing-key": f"retry.#.{tier}",
        "x-message-ttl": ttl,
    }


QUEUES: tuple[tuple[str, Arguments], ...] = (
    ("retry-queue", {}),
    ("retry-queue-1", {}),
    ("retry-queue-2", {}),
    ("retry-queue-3", {}),
    ("queue.delay.1", _delay(1, 10000)),
    ("queue.delay.2", _delay(2, 15000)),
    ("queue.delay.3", _delay(3, 20000)),
    ("dlq-queue", {}),
    ("test-pass-queue", TO_RETRY),
    ("test-fail-queue", TO_RETRY),
    ("test-fail-pass-queue", TO_RETRY),
)
BINDINGS = (
    ("retry-exchange", "retry-queue", "retry-routing-key"),
    ("retry-exchange-1", "retry-queue-1", ""),
    ("retry-exchange-2", "retry-queue-2", ""),
    ("retry-exchange-3", "retry-queue-3", ""),
    ("route-delay", "queue.delay.1", "binding.#.1"),
    ("route-delay", "queue.delay.2", "binding.#.2"),
    ("route-delay", "queue.delay.3", "binding.#.3"),
    ("dlq-exchange", "dlq-queue", "dlq-exchange"),
    ("test-retry-exchange", "test-pass-queue", "rk.test.pass"),
    ("test-retry-exchange", "test-fail-queue", "rk.test.fail"),
    ("test-retry-exchange", "test-fail-pass-queue", "rk.test.fail.pass"),
)
# What the text and the tables of exchanges say is sent; the fourth is a `max_retries` of 4.
SENDS = (
    ("route-delay", "binding.order.created.1"),
    ("route-delay", "binding.order.created.2"),
    ("route-delay", "binding.order.created.3"),
    ("route-delay", "binding.x.4"),
    ("dlq-exchange", "dlq-routing-key"),
    ("test-retry-exchange", "rk.test.pass"),
    ("test-retry-exchange", "rk.test.fail"),
    ("test-retry-exchange", "rk.test.fail.pass"),
)

EXCHANGES = {
    name: RabbitExchange(name, type=ExchangeType.TOPIC)
    for name in dict.fromkeys(exchange for exchange, _, _ in BINDINGS)
}
ROWS = {name: durable_queue(name, arguments) for name, arguments in QUEUES}
AS_WRITTEN = Topology(
    tuple(EXCHANGES.values()),
    tuple(ROWS.values()),
    tuple(Binding(EXCHANGES[exchange], ROWS[queue], key) for exchange, queue, key in BINDINGS),
)
