"""A channel that publishes and hears the broker's word on every letter: taken, returned, refused, or none."""

from __future__ import annotations

from collections.abc import Callable

from pamqp import commands

from service.core.marks import LETTER
from service.core.plan import Address
from service.edge.address import is_blamed, shown
from service.edge.declare import permission
from service.edge.fields import Unreadable, find_text
from service.edge.post import NotSent, NotTaken, Unroutable
from service.edge.wire import frames
from service.edge.wire.channel import Channel
from service.edge.wire.connection import Connection
from service.edge.wire.delivered import table_at
from service.edge.wire.errors import NO_ACCESS, NOT_FOUND, Doubtful, Lost, Refused

Fate = NotSent | Unroutable | None
"""None is the broker's word that it has the letter, in a queue."""
Answer = Callable[[Fate], None]
MOST_ADDRESSES = 4096


class Flight:
    """A letter on its way to the broker."""

    __slots__ = ("answer", "body", "is_returned", "properties", "since", "to")

    def __init__(
        self, to: Address, properties: bytes, body: bytes, answer: Answer, since: float
    ) -> None:
        self.to, self.properties, self.body = to, properties, body
        self.answer, self.since, self.is_returned = answer, since, False


class Confirmed(Channel):
    """Every letter is mandatory, and its answer comes once, whatever happens."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, connection.number())
        self.flights: dict[int, Flight] = {}
        """Letters without an answer, by their number, the oldest first."""
        self.heard = 0.0
        """When the broker said its last word on a letter."""
        self._count = 0
        self._first_frames: dict[Address, bytes] = {}

    async def start(self) -> None:
        """Open the channel, and ask for the broker's word on each letter."""
        await self.open()
        await self.ask(commands.Confirm.Select())

    def publish(self, flight: Flight) -> None:
        """Hand a letter over. What can raise comes first: a letter that is counted and not written would
        shift the broker's word to its neighbours."""
        first = self._first_frame(flight.to)
        content = frames.content(self.number, flight.properties, flight.body, self.connection.room)
        self._count += 1
        self.flights[self._count] = flight
        self.connection.send(first, *content)

    def on_settled(self, tag: int, *, upto: bool, taken: bool) -> None:
        """The broker's word on one letter, or on all up to it."""
        flights = self.flights
        self.heard = self.connection.loop.time()
        if not upto:
            if (flight := flights.pop(tag, None)) is not None:
                _tell(flight, taken)
            return
        numbers = []
        for number in flights:
            if number > tag:
                break
            numbers.append(number)
        for number in numbers:
            _tell(flights.pop(number), taken)

    def on_content(self, head: bytes, properties: bytes, body: bytes) -> None:
        """A letter that no queue takes; its confirmation follows."""
        returned = frames.read(head)
        assert isinstance(returned, commands.Basic.Return)
        to = Address(returned.exchange or "", returned.routing_key or "")
        flight = self._find(to, properties, body)
        if flight is None:
            # It may be anybody's: whoever is in flight is in doubt, and nobody is told it arrived.
            self.connection.drop(Lost("a return that names no letter in hand"))
        else:
            flight.is_returned = True

    def on_end(self, why: Exception) -> None:
        """Nobody will answer any more."""
        flights, self.flights = self.flights, {}
        for flight in flights.values():
            flight.answer(_failure(why, flight.to))

    def _find(self, to: Address, properties: bytes, body: bytes) -> Flight | None:
        """Which letter came back: the one with the same bytes, else (a broker may write the same
        headers in another way) the oldest with this address, this body and this mark."""
        there = [f for f in self.flights.values() if f.to == to and not f.is_returned]
        same = [f for f in there if f.properties == properties and f.body == body]
        if same:
            return same[0]
        mark = _mark(properties)
        alike = (f for f in there if mark is not None and f.body == body)
        return next((f for f in alike if _mark(f.properties) == mark), None)

    def _first_frame(self, to: Address) -> bytes:
        """The same for every letter to this address."""
        frame = self._first_frames.get(to)
        if frame is None:
            if len(self._first_frames) > MOST_ADDRESSES:
                self._first_frames.clear()
            frame = frames.publish(to.exchange, to.routing_key, self.number)
            self._first_frames[to] = frame
        return frame


def _tell(flight: Flight, taken: bool) -> None:
    if flight.is_returned:
        flight.answer(Unroutable(f"no queue takes {shown(flight.to)}"))
    elif taken:
        flight.answer(None)
    else:
        flight.answer(
            NotTaken(f"the queue refuses {shown(flight.to)}: it is full, or cannot answer for it")
        )


def _mark(properties: bytes) -> bytes | None:
    start, stop = table_at(properties)
    try:
        return find_text(properties[start:stop], LETTER)
    except (Unreadable, IndexError):
        return None


def _failure(why: Exception, to: Address) -> NotSent | Unroutable:
    """The channel or the connection ended over one letter, or over none: what that means for this one."""
    match why:
        case Refused(code=code) if code in (NOT_FOUND, NO_ACCESS) and is_blamed(why, to):
            return Unroutable(permission(why.text))
        case Refused(code=code) if code == NO_ACCESS:
            return NotSent(permission(why.text))
        case Refused():
            return Doubtful(str(why))
        case _:
            return NotSent(str(why))
