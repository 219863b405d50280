"""The post for Kafka: a copy is confirmed by all replicas in sync, or an error says why not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import structlog

from service.core.plan import Send
from service.edge.kafka.needed import demand
from service.edge.kafka.records import Record, Wire, headers_for
from service.edge.letter import Letter
from service.edge.post import NotSent

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

POLL = 0.1
CRITICAL = 2  # what is wrong is said in our own log: librdkafka would write a line for every try
LARGEST = 1_000_000_000  # what is too large is the topic's to say, not the client's


class KafkaPost:
    """One idempotent producer, and a thread that hears its confirmations."""

    def __init__(
        self,
        servers: Iterable[str],
        *,
        timeout: float,
        wire: Wire = "text",
        client: Mapping[str, str] | None = None,
    ) -> None:
        demand()
        self._servers, self._timeout, self._wire = ",".join(servers), timeout, wire
        self._client = dict(client or {})
        self._producer: Producer | None = None
        self._hearing: threading.Thread | None = None
        self._over = threading.Event()
        self._log = structlog.get_logger("dlo.kafka")

    @property
    def is_open(self) -> bool:
        """Whether there is a producer."""
        return self._producer is not None

    async def open(self) -> None:
        """Connect now instead of at the first letter; NotSent where nobody answers."""
        producer = self._opened()
        try:
            await asyncio.to_thread(producer.list_topics, timeout=self._timeout)
        except Exception as error:  # noqa: BLE001  # KafkaException, and what its callbacks raise
            raise NotSent(f"Kafka {self._servers} cannot be reached: {in_words(error)}") from None

    async def close(self) -> None:
        """Wait for what is on its way, and hang up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await asyncio.to_thread(producer.flush, self._timeout)
        self._over.set()

    async def send(self, letter: Letter, send: Send) -> None:
        """Return when all replicas in sync have it; NotSent otherwise."""
        assert isinstance(letter, Record)  # nothing but Kafka's own letters is sent there
        loop, topic = asyncio.get_running_loop(), send.to.routing_key
        answer: asyncio.Future[None] = loop.create_future()

        def told(error: KafkaError | None, _message: Message) -> None:
            loop.call_soon_threadsafe(_answer, answer, None if error is None else error.str())
            if error is not None and error.fatal():
                self._producer = None  # it will never send again: the next letter gets a new one

        headers = headers_for(letter, send.marks, self._wire)
        try:
            self._opened().produce(
                topic, letter.value, letter.key, headers=headers, on_delivery=told
            )
        except Exception as error:  # noqa: BLE001  # a full queue, an impossible topic: KafkaException, BufferError
            raise NotSent(f"Kafka does not take it for {topic}: {in_words(error)}") from None
        try:
            await answer
        except NotSent as failure:
            raise NotSent(f"Kafka does not take it for {topic}: {failure}") from None

    def _opened(self) -> Producer:
        if self._producer is None:
            from confluent_kafka import Producer

            self._over.set()
            self._over = threading.Event()
            self._producer = Producer(self._settings())
            listen = threading.Thread(
                target=_hear, args=(self._producer, self._over), name="kafka post", daemon=True
            )
            listen.start()
        return self._producer

    def _settings(self) -> dict[str, object]:
        """What is promised cannot be configured away; where a key goes is as Java producers have it."""
        return {
            "client.id": "dead-letter-office",
            "partitioner": "murmur2_random",
            "message.max.bytes": LARGEST,
            "linger.ms": 0,
            "log_level": CRITICAL,
            **self._client,
            "bootstrap.servers": self._servers,
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": round(self._timeout * 1000),
        }


def in_words(error: Exception) -> str:
    """What Kafka's client says of a fault, without its own code around it."""
    told = error.args[0] if error.args else error
    return told.str() if hasattr(told, "str") else str(error)


def _answer(answer: asyncio.Future[None], error: str | None) -> None:
    if answer.done():
        return  # nobody waits any more
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(NotSent(error))


def _hear(producer: Producer, over: threading.Event) -> None:
    while not over.is_set():
        producer.poll(POLL)
