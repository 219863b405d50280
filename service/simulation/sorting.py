"""The sorting room of the simulated broker: letters arrive in queues, expire, die and travel on."""

from __future__ import annotations

from datetime import datetime

from service.simulation.counting import (
    Method,
    count_discard,
    count_return,
    delivery_limit,
    is_over_limit,
    is_redelivered,
    shown,
)
from service.simulation.deaths import Reason, is_cycle
from service.simulation.dying import dead
from service.simulation.flavour import Flavour
from service.simulation.journal import Event, Happening
from service.simulation.letter import Delivery, Letter
from service.simulation.lines import Line, Place
from service.topology.arguments import dead_letter_exchange, is_at_least_once
from service.topology.routing import reached
from service.topology.tables import Topology


class SortingRoom:
    """All queues of one broker at one moment."""

    def __init__(self, topology: Topology, flavour: Flavour, now: datetime) -> None:
        self.topology = topology
        self.flavour = flavour
        self.now = now
        self.round = 0
        self.journal: list[Event] = []
        self.lines = {row.name: Line(row) for row in topology.queues}

    def note(self, what: Happening, where: str, letter: Letter, why: str = "") -> None:
        """Write into the journal."""
        self.journal.append(Event(self.now, what, where, letter, why))

    def targets(self, letter: Letter) -> tuple[str, ...]:
        """The queues that would take this letter."""
        queues = reached(self.topology, letter.exchange, letter.keys, letter.headers)
        return tuple(queue.name for queue in queues)

    def arrive(self, letter: Letter, names: tuple[str, ...]) -> None:
        """A copy for each of these queues."""
        for name in names:
            self.lines[name].join(letter, self.now, self.round)
            self.note(Happening.ARRIVED, name, letter)

    def hand_out(self, line: Line, tag: int, *, polled: bool) -> Delivery:
        """The first letter of a line, as a consumer (or a poll) sees it."""
        place = line.hand_out(tag)
        counts = shown(place, line.row, self.flavour, polled=polled)
        redelivered = is_redelivered(place, line.row, self.flavour, waited=place.round < self.round)
        self.note(Happening.DELIVERED, line.name, place.letter)
        return Delivery(
            tag, line.name, place.letter, {**place.letter.headers, **counts}, redelivered
        )

    def give_back(self, line: Line, place: Place, method: Method) -> None:
        """Back into its queue, unless that queue has had enough of it."""
        count_return(place, method, self.flavour)
        limit = delivery_limit(line.row, self.flavour)
        if is_over_limit(place, limit, self.flavour):
            self.die(line, place, Reason.DELIVERY_LIMIT)
            return
        line.take_back(place, last=limit is None and self.flavour.unlimited_goes_last)
        self.note(Happening.REQUEUED, line.name, place.letter, method)

    def discard(self, line: Line, place: Place, method: Method) -> None:
        """Refused for good."""
        count_discard(place, line.row, method, self.flavour)
        self.die(line, place, Reason.REJECTED)

    def expire_one(self, *, fresh: bool) -> bool:
        """A letter past its time at the head of a queue dies; False if there is none.

        `fresh`: those too that came just now, for a consumer may take even a letter without any time.
        """
        for line in self.lines.values():
            if line.is_due(self.now) and (fresh or line.ready[0].round < self.round):
                self.die(line, line.ready.pop(0), Reason.EXPIRED)
                return True
        return False

    def die(self, line: Line, place: Place, reason: Reason) -> None:
        """Out of its queue and on to the dead-letter exchange, if there is one and it leads anywhere."""
        self.note(Happening.DIED, line.name, place.letter, reason)
        exchange = dead_letter_exchange(line.row)
        if exchange is None:
            self.note(Happening.LOST, line.name, place.letter, f"{reason}, no dead-letter exchange")
            return
        letter = dead(place.letter, line.row, exchange, reason, self.now, self.flavour)
        names = self.targets(letter) if self.topology.has_exchange(exchange) else ()
        free = names if reason is Reason.REJECTED else self._outside_loops(names, letter)
        if free:
            self.arrive(letter, free)
        elif is_at_least_once(line.row):
            line.held.append(letter)
            self.note(Happening.HELD, line.name, letter, "nothing takes it")
        elif not names:
            self.note(Happening.LOST, line.name, letter, f"nothing takes it from {exchange!r}")

    def _outside_loops(self, names: tuple[str, ...], letter: Letter) -> tuple[str, ...]:
        for name in names:
            if is_cycle(name, letter.deaths):
                self.note(Happening.LOST, name, letter, "a loop without a rejection in it")
        return tuple(name for name in names if not is_cycle(name, letter.deaths))
