"""A letter on its way through the simulated broker, and one delivery of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.simulation.deaths import Deaths, told
from service.simulation.flavour import Flavour

Headers = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Letter:
    """A message and its envelope, as one queue holds it."""

    body: bytes
    exchange: str
    keys: tuple[str, ...]  # the routing key, then the keys of the CC and BCC headers
    blind: tuple[str, ...] = ()  # those of the BCC header: they are not to be told
    headers: Headers = field(default_factory=dict)
    properties: Headers = field(default_factory=dict)
    deaths: Deaths = ()
    rejections: int = 0  # what RabbitMQ 4 carries from queue to queue beside the headers

    @property
    def routing_key(self) -> str:
        """The key it was last sent with."""
        return self.keys[0]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to hand one letter to one consumer; settle it with its tag."""

    tag: int
    queue: str
    letter: Letter
    headers: Headers
    redelivered: bool

    @property
    def body(self) -> bytes:
        """The body, untouched."""
        return self.letter.body

    @property
    def exchange(self) -> str:
        """The exchange it came through last; a dead letter's is the dead-letter exchange."""
        return self.letter.exchange

    @property
    def routing_key(self) -> str:
        """The key it came with last."""
        return self.letter.routing_key


def published(
    exchange: str,
    routing_key: str,
    body: bytes,
    headers: Headers,
    properties: Headers,
    flavour: Flavour,
) -> Letter:
    """The letter a client's publish makes."""
    return Letter(
        body=body,
        exchange=exchange,
        keys=(routing_key, *keys_in(headers, "CC"), *keys_in(headers, "BCC")),
        blind=keys_in(headers, "BCC"),
        headers={name: value for name, value in headers.items() if name != "BCC"},
        properties=dict(properties),
        deaths=told(headers) if flavour.believes_client_deaths else (),
    )


def keys_in(headers: Headers, name: str) -> tuple[str, ...]:
    """The further routing keys a sender wrote into a header."""
    value = headers.get(name)
    return tuple(key for key in value if isinstance(key, str)) if isinstance(value, list) else ()
