"""The arguments of a queue, read back by name."""

from __future__ import annotations

from datetime import timedelta

from faststream.rabbit import RabbitQueue


def text(queue: RabbitQueue, name: str) -> str | None:
    """An argument that is a text, or nothing."""
    value = queue.arguments.get(name)
    return value if isinstance(value, str) else None


def number(queue: RabbitQueue, name: str) -> int | None:
    """An argument that is a whole number, or nothing."""
    value = queue.arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def dead_letter_exchange(queue: RabbitQueue) -> str | None:
    """Where its dead letters go; `""` is the default exchange, None is nowhere."""
    return text(queue, "x-dead-letter-exchange")


def dead_letter_key(queue: RabbitQueue) -> str | None:
    """The key its dead letters travel under; None: each under its own."""
    return text(queue, "x-dead-letter-routing-key")


def time_to_live(queue: RabbitQueue) -> timedelta | None:
    """How long a letter may wait in it."""
    wait = number(queue, "x-message-ttl")
    return None if wait is None else timedelta(milliseconds=wait)


def is_quorum(queue: RabbitQueue) -> bool:
    """Whether the queue is replicated, which changes how it counts, orders and dead-letters."""
    return text(queue, "x-queue-type") == "quorum"


def is_at_least_once(queue: RabbitQueue) -> bool:
    """Whether it keeps its dead letters until their target has confirmed them."""
    return (
        is_quorum(queue)
        and dead_letter_exchange(queue) is not None
        and text(queue, "x-dead-letter-strategy") == "at-least-once"
        and text(queue, "x-overflow") == "reject-publish"
    )
