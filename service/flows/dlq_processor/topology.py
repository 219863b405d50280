"""The central processor's exchanges, queues and bindings: the document's tables, corrected as decided.

A failing letter's life:
1. A consumer of `orders` rejects it; the queue's dead-letter exchange is `retry-exchange`, and the
   letter is in `retry-queue`.
2. Its routing key has a route: it waits in `queue.delay.1`, then `.2`, then `.3` (the last one repeats).
3. When the wait is over the delay queue dead-letters it to `retry-exchange-N`, and from
   `retry-queue-N` it goes back to `orders`, and to no other queue.
4. Its retries are spent, or its key has no route: it is in `dlq-queue`, for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

from faststream.rabbit import ExchangeType, QueueType, RabbitExchange, RabbitQueue

from service.core.plan import Address
from service.topology.tables import Arguments, Binding, Topology, dead_letters_to, expires_to

LONGEST_KEY = 255
# A quorum queue drops a letter that came back too often: after 20 times on RabbitMQ 4, unless told
# otherwise, and -1 ("never") kills at the first return on 3.10. So: a number nobody reaches by hand.
MANY = 100_000

RETRY_KEY = "retry-routing-key"
DEAD_KEY = "dlq-routing-key"

RETRY = RabbitExchange("retry-exchange", type=ExchangeType.TOPIC)
DELAY = RabbitExchange("route-delay", type=ExchangeType.TOPIC)
DEAD = RabbitExchange("dlq-exchange", type=ExchangeType.TOPIC)
DRILL = RabbitExchange("test-retry-exchange", type=ExchangeType.TOPIC)

DEAD_ADDRESS = Address(DEAD.name, DEAD_KEY)


def retry_exchange(tier: int) -> RabbitExchange:
    """Where the letters of a tier go when their wait is over."""
    return RabbitExchange(f"retry-exchange-{tier}", type=ExchangeType.TOPIC)


def retry_queue(kind: QueueType) -> RabbitQueue:
    """Every dead-lettered letter of every queue arrives here."""
    return _queue("retry-queue", RETRY_KEY, kind, _net(kind))


def returned_queue(tier: int, kind: QueueType) -> RabbitQueue:
    """Letters whose wait in this tier is over."""
    return _queue(f"retry-queue-{tier}", returned_key(tier), kind, _net(kind))


def delay_queue(tier: int, wait: timedelta, kind: QueueType) -> RabbitQueue:
    """Letters wait here: one fixed time per queue, because only the head of a queue expires."""
    to = expires_to(retry_exchange(tier), returned_key(tier), wait, kind)
    return _queue(f"queue.delay.{tier}", f"binding.#.{tier}", kind, to)


def dead_queue(kind: QueueType) -> RabbitQueue:
    """The dead letters, for people."""
    return _queue("dlq-queue", DEAD_KEY, kind, _unlimited(kind))


def drill_queue(name: str, key: str, kind: QueueType) -> RabbitQueue:
    """A queue of the drill: it dead-letters to us as anybody's queue does."""
    return _queue(name, key, kind, dead_letters_to(RETRY, RETRY_KEY, kind))


def pass_queue(kind: QueueType) -> RabbitQueue:
    """Its consumer accepts."""
    return drill_queue("test-pass-queue", "rk.test.pass", kind)


def fail_queue(kind: QueueType) -> RabbitQueue:
    """Its consumer always rejects."""
    return drill_queue("test-fail-queue", "rk.test.fail", kind)


def fail_pass_queue(kind: QueueType) -> RabbitQueue:
    """Its consumer rejects first and accepts what was retried."""
    return drill_queue("test-fail-pass-queue", "rk.test.fail.pass", kind)


def returned_key(tier: int) -> str:
    """The literal key under which a delay queue lets go: `#` is no wildcard in a routing key."""
    return f"retry.#.{tier}"


def delay_address(key: str, tier: int) -> Address:
    """`binding.<routing key>.<tier>`; a digest stands for a key that would make it too long."""
    name = f"binding.{key}.{tier}"
    if len(name.encode("utf-8", "surrogateescape")) > LONGEST_KEY:
        name = f"binding.{sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()}.{tier}"
    return Address(DELAY.name, name)


def tables(tiers: Sequence[timedelta], kind: QueueType, *, drill: bool) -> Topology:
    """Everything this flow declares."""
    retry, dead = retry_queue(kind), dead_queue(kind)
    core = Topology(
        exchanges=(RETRY, DELAY, DEAD),
        queues=(retry, dead),
        bindings=(
            Binding(RETRY, retry, RETRY_KEY),
            Binding(DEAD, dead, DEAD_KEY),
            Binding(DEAD, dead, DEAD.name),  # the document binds this key and sends the other
        ),
    )
    for number, wait in enumerate(tiers, start=1):
        core += _tier(number, wait, kind)
    return core + _drill(kind) if drill else core


def _tier(number: int, wait: timedelta, kind: QueueType) -> Topology:
    delay, back, after = (
        delay_queue(number, wait, kind),
        returned_queue(number, kind),
        retry_exchange(number),
    )
    return Topology(
        exchanges=(after,),
        queues=(delay, back),
        bindings=(Binding(DELAY, delay, delay.routing_key), Binding(after, back, back.routing_key)),
    )


def _drill(kind: QueueType) -> Topology:
    queues = (pass_queue(kind), fail_queue(kind), fail_pass_queue(kind))
    return Topology(
        exchanges=(DRILL,),
        queues=queues,
        bindings=tuple(Binding(DRILL, queue, queue.routing_key) for queue in queues),
    )


def _net(kind: QueueType) -> Arguments:
    """Under a quorum queue that we consume: what came back too often goes to the dead letters."""
    if kind is not QueueType.QUORUM:
        return {}
    return dead_letters_to(DEAD, DEAD_KEY, kind) | _unlimited(kind)


def _unlimited(kind: QueueType) -> Arguments:
    return {"x-delivery-limit": MANY} if kind is QueueType.QUORUM else {}


def _queue(name: str, key: str, kind: QueueType, arguments: Arguments) -> RabbitQueue:
    return RabbitQueue(  # type: ignore[call-overload, no-any-return]  # the kind is a setting, not a literal
        name, queue_type=kind, routing_key=key, arguments=arguments
    )
