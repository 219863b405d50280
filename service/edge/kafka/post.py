"""The post for Kafka: a copy is confirmed by all replicas in sync, or an error says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from service.core.plan import Send
from service.edge.kafka.line import Line, in_words
from service.edge.kafka.needed import demand
from service.edge.kafka.records import Record, Wire, headers_for
from service.edge.letter import Letter
from service.edge.post import NotSent

MARGIN = 2.0  # librdkafka looks once a second for what has waited too long
CRITICAL = 2  # what is wrong is said in our own log: librdkafka would write a line for every try
LARGEST = 1_000_000_000  # what is too large is the topic's to say, not the client's


class KafkaPost:
    """One idempotent producer at a time."""

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
        self._line: Line | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a producer that can send."""
        return self._line is not None and not self._line.is_over

    async def open(self) -> None:
        """Connect now instead of at the first letter; NotSent where nobody answers."""
        line = self._opened()
        try:
            await asyncio.to_thread(line.reach, self._timeout)
        except Exception as error:  # noqa: BLE001  # KafkaException, and what its callbacks raise
            raise NotSent(f"Kafka {self._servers} cannot be reached: {in_words(error)}") from None

    async def close(self) -> None:
        """Wait for what is on its way, and hang up."""
        line, self._line = self._line, None
        if line is not None:
            await asyncio.to_thread(line.flush, self._timeout)

    async def send(self, letter: Letter, send: Send) -> None:
        """Return when all replicas in sync have it; NotSent otherwise."""
        assert isinstance(letter, Record)  # nothing but Kafka's own letters is sent there
        topic, headers = send.to.routing_key, headers_for(letter, send.marks, self._wire)
        try:
            async with asyncio.timeout(self._timeout + MARGIN):
                await self._opened().send(topic, letter, headers)
        except TimeoutError:
            raise NotSent(f"Kafka does not take it for {topic}: no answer") from None
        except NotSent as failure:
            raise NotSent(f"Kafka does not take it for {topic}: {failure}") from None

    def _opened(self) -> Line:
        """A line that has ended is replaced, as a whole: whoever waited on it has been told."""
        if self._line is None or self._line.is_over:
            try:
                self._line = Line(self._settings())
            except Exception as error:  # noqa: BLE001  # a property that the client does not take
                raise NotSent(in_words(error)) from None
        return self._line

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
