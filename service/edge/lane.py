"""A lane: where deliveries come from and plans go to; what the desk knows of a broker's messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from service.core.delivery import Envelope
from service.core.outcome import Refused
from service.core.plan import Settle
from service.edge import carry_out, reading
from service.edge.letter import Letter
from service.edge.reading import Limits

Raw = Any
"""A message as the broker's library hands it over: nobody but its lane looks inside."""


class Lane(Protocol):
    """Reads a delivery, and ends it."""

    def envelope(self, raw: Raw, at: datetime) -> Envelope:
        """What the message says of itself."""

    def letter(self, raw: Raw) -> Letter:
        """The letter, ready to be sent again."""

    def fault(self, raw: Raw, limits: Limits) -> Refused | None:
        """Why no attempt should be made with it."""

    async def settle(self, how: Settle, raw: Raw) -> None:
        """End the delivery, or raise Unsettled."""


class RabbitLane:
    """RabbitMQ, by way of aio-pika."""

    def envelope(self, raw: Raw, at: datetime) -> Envelope:
        """What the message says of itself."""
        return reading.envelope_of(raw, at)

    def letter(self, raw: Raw) -> Letter:
        """The letter, ready to be sent again."""
        return reading.letter_of(raw)

    def fault(self, raw: Raw, limits: Limits) -> Refused | None:
        """Why no attempt should be made with it."""
        return reading.fault_in(raw, limits)

    async def settle(self, how: Settle, raw: Raw) -> None:
        """End the delivery, or raise Unsettled."""
        await carry_out.settle(how, raw)


class Unsettling:
    """Another lane's deliveries, which somebody else will settle."""

    def __init__(self, lane: Lane) -> None:
        self.envelope, self.letter, self.fault = lane.envelope, lane.letter, lane.fault

    async def settle(self, how: Settle, raw: Raw) -> None:
        """Nothing."""


RABBIT = RabbitLane()
