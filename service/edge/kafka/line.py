"""A line to Kafka: one producer, the thread that hears its confirmations, and who waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from service.edge.kafka.records import Header, Record
from service.edge.post import NotSent

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

POLL = 0.1


class Line:
    """Ends as a whole: a producer with a fatal fault never sends again, and nobody shall wait for it."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(dict(settings))
        self._waiting: set[asyncio.Future[None]] = set()
        self._over: str | None = None
        threading.Thread(target=self._hear, name="kafka post", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over is not None

    def reach(self, timeout: float) -> None:
        """Ask the cluster for anything: raises where nobody answers."""
        self._producer.list_topics(timeout=timeout)

    async def send(self, topic: str, record: Record, headers: list[Header]) -> None:
        """Return when all replicas in sync have it; NotSent otherwise."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(answer)
        answer.add_done_callback(self._waiting.discard)

        def told(error: KafkaError | None, _message: Message) -> None:
            if error is not None and error.fatal():
                self.end(error.str())
            _tell(answer, None if error is None else error.str())

        try:
            self._producer.produce(
                topic, record.value, record.key, headers=headers, on_delivery=told
            )
        except Exception as error:  # noqa: BLE001  # a full queue, an impossible topic: KafkaException, BufferError
            answer.cancel()
            if _is_fatal(error):
                self.end(in_words(error))
            raise NotSent(in_words(error)) from None
        if self._over is not None:  # since a moment ago: whoever ended it may not have seen us wait
            _answer(answer, self._over)
        await answer

    def flush(self, timeout: float) -> None:
        """Wait for what is on its way; what is not confirmed by then has failed."""
        with suppress(
            Exception
        ):  # a fatal fault: all who wait are told by the thread that hears it
            self._producer.flush(timeout)
        self.end("the post is closed")

    def end(self, why: str) -> None:
        """Give up the producer, and tell all who wait. From any thread."""
        self._over = self._over or why
        for answer in tuple(self._waiting):
            _tell(answer, self._over)

    def _hear(self) -> None:
        while not self.is_over:
            try:
                self._producer.poll(POLL)
            except Exception as error:  # noqa: BLE001  # a fatal fault is raised here, and only here
                self.end(in_words(error))


def in_words(error: Exception) -> str:
    """What Kafka's client says of a fault, without its own code around it."""
    told = error.args[0] if error.args else error
    return told.str() if hasattr(told, "str") else str(error)


def _is_fatal(error: Exception) -> bool:
    from confluent_kafka import KafkaError

    told = error.args[0] if error.args else None
    return isinstance(told, KafkaError) and (told.fatal() or told.code() == KafkaError._FATAL)


def _tell(answer: asyncio.Future[None], error: str | None) -> None:
    with suppress(RuntimeError):  # its loop is closed: nobody waits any more
        answer.get_loop().call_soon_threadsafe(_answer, answer, error)


def _answer(answer: asyncio.Future[None], error: str | None) -> None:
    if answer.done():
        return  # nobody waits any more
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(NotSent(error))
