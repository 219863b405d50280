"""The payment story's exchanges, queues and bindings, named as in the document.

A failing settlement's life:
1. `POST /api/v1/transactions` writes a row and a letter; the letter goes to `transaction.created`.
2. The transaction worker processes the row and asks for its settlement: `settlement.requested`.
3. The settlement worker asks the bank, in vain: the letter goes back to the queue it came from, at
   once, and the queue counts. So it is delivered four times.
4. The fourth failure: it is published to `dlq.settlement.requested` with the error, and acknowledged.
5. A letter that nobody took for five minutes, or that killed its worker four times, is brought to the
   same place by the queue itself.
6. There it lies for people; the monitor reads a copy.
"""

from __future__ import annotations

from datetime import timedelta

from faststream.rabbit import ExchangeType, QueueType, RabbitExchange, RabbitQueue

from service.core.duration import milliseconds
from service.core.plan import Address
from service.topology.tables import Arguments, Binding, Topology, dead_letters_to, durable_queue

# Looking at a dead letter is a return, and RabbitMQ 4 drops a letter after 20 of them unless told
# otherwise; -1 ("never") kills at the first return on 3.10. So: a number nobody reaches by hand.
MANY = 100_000

# One exchange per topic, and whoever is interested binds a queue of his own, as the document's bus
# does: the routing key is the transaction's id and chooses nothing.
CREATED = RabbitExchange("transaction.created", type=ExchangeType.FANOUT)
REQUESTED = RabbitExchange("settlement.requested", type=ExchangeType.FANOUT)


def dead_exchange(topic: RabbitExchange) -> RabbitExchange:
    """Where the dead letters of a topic go."""
    return RabbitExchange(f"dlq.{topic.name}", type=ExchangeType.FANOUT)


def worker_queue(
    topic: RabbitExchange, max_retries: int, ttl: timedelta = timedelta()
) -> RabbitQueue:
    """The queue all workers of a topic share: always quorum, for only that counts deliveries.

    A limit of n lets a letter come back n times: n + 1 deliveries, on 3.10 and 4.3 alike. The last
    one is ours to end; the limit is for a worker that dies of it.
    """
    limits: Arguments = {"x-delivery-limit": max_retries}
    if ttl:
        limits["x-message-ttl"] = milliseconds(ttl)
    net = dead_letters_to(dead_exchange(topic), kind=QueueType.QUORUM)
    return durable_queue(f"{topic.name}.worker", net | limits, QueueType.QUORUM)


def dead_queue(topic: RabbitExchange, kind: QueueType) -> RabbitQueue:
    """The dead letters of a topic, for people: nothing consumes them."""
    return durable_queue(dead_exchange(topic).name, _unlimited(kind), kind)


def monitor_queue(kind: QueueType) -> RabbitQueue:
    """A copy of every dead letter, for the monitor: so that the letters themselves stay."""
    return durable_queue("dlq.settlement.monitor", _unlimited(kind), kind)


def address(topic: RabbitExchange, transaction: str) -> Address:
    """The address of a letter about a transaction."""
    return Address(topic.name, transaction)


def tables(max_retries: int, ttl: timedelta, kind: QueueType) -> Topology:
    """Everything this flow declares."""
    monitor = monitor_queue(kind)
    return _topic(CREATED, worker_queue(CREATED, max_retries), kind, monitor) + _topic(
        REQUESTED, worker_queue(REQUESTED, max_retries, ttl), kind, monitor
    )


def _topic(
    topic: RabbitExchange, worker: RabbitQueue, kind: QueueType, monitor: RabbitQueue
) -> Topology:
    dead, buried = dead_exchange(topic), dead_queue(topic, kind)
    ends = ((topic, worker), (dead, buried), (dead, monitor))
    return Topology(
        exchanges=(topic, dead),
        queues=(worker, buried, monitor),
        # A fanout looks at no key; FastStream binds a subscriber's queue under its name, and so do
        # we, for otherwise there would be two bindings.
        bindings=tuple(Binding(exchange, queue, queue.name) for exchange, queue in ends),
    )


def _unlimited(kind: QueueType) -> Arguments:
    return {"x-delivery-limit": MANY} if kind is QueueType.QUORUM else {}
