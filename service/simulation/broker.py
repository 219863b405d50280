"""RabbitMQ on paper, in virtual time; priorities and length limits are not on the paper."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from service.simulation.consumers import Consumer, ready_consumer
from service.simulation.counting import Method
from service.simulation.flavour import RABBIT_4_3, Flavour
from service.simulation.journal import Event, Happening
from service.simulation.letter import Delivery, Headers, Letter, published
from service.simulation.lines import Line, Place
from service.simulation.sorting import SortingRoom
from service.topology.tables import Topology

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class SimulatedBroker:
    """One broker with one topology; nothing moves but by the calls below."""

    def __init__(
        self, topology: Topology, flavour: Flavour = RABBIT_4_3, now: datetime = EPOCH
    ) -> None:
        self.topology = topology
        self._room = SortingRoom(topology, flavour, now)
        self._consumers: list[Consumer] = []
        self._tags = 0
        self._is_moving = False

    # publishing

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        headers: Headers | None = None,
        properties: Headers | None = None,
        *,
        mandatory: bool = True,
    ) -> bool:
        """Send a letter; False if no queue took it. An exchange that is not there is a LookupError."""
        self.topology.exchange(exchange)
        flavour = self._room.flavour
        letter = published(exchange, routing_key, body, headers or {}, properties or {}, flavour)
        self._room.note(Happening.PUBLISHED, exchange, letter)
        names = self._room.targets(letter)
        if not names:
            what = Happening.RETURNED if mandatory else Happening.LOST
            self._room.note(what, exchange, letter, "no queue is bound for its key")
        self._room.arrive(letter, names)
        self._move()
        return bool(names)

    # consuming

    def get(self, queue: str) -> Delivery | None:
        """Take the first letter of a queue, if there is one."""
        line = self._line(queue)
        return self._room.hand_out(line, self._tag(), polled=True) if line.ready else None

    def consume(
        self,
        queue: str,
        receive: Callable[[Delivery], None],
        *,
        prefetch: int = 0,
        no_ack: bool = False,
    ) -> Consumer:
        """Push letters of a queue to a callback, at most `prefetch` unsettled ones (0: any number)."""
        consumer = Consumer(self._line(queue).name, receive, prefetch, no_ack)
        self._consumers.append(consumer)
        self._move()
        return consumer

    def cancel(self, consumer: Consumer) -> None:
        """No more letters for this consumer; those it has it may still settle."""
        self._consumers.remove(consumer)

    def disconnect(self, consumer: Consumer) -> None:
        """The consumer is gone: what it did not settle goes back to its queue, and that counts."""
        self.cancel(consumer)
        line = self._line(consumer.queue)
        for tag in sorted(consumer.outstanding & line.out.keys()):
            self._room.give_back(line, line.out.pop(tag), Method.REJECT)
        self._move()

    # settling

    def ack(self, delivery: Delivery) -> None:
        """Done: the letter is gone."""
        line, place = self._settle(delivery)
        self._room.note(Happening.ACKNOWLEDGED, line.name, place.letter)
        self._move()

    def reject(self, delivery: Delivery, *, requeue: bool = False) -> None:
        """`basic.reject`: back to its queue, or to the dead letters."""
        self._refuse(delivery, Method.REJECT, requeue)

    def nack(self, delivery: Delivery, *, requeue: bool = True) -> None:
        """`basic.nack`: the same, except for what RabbitMQ 4.3 counts."""
        self._refuse(delivery, Method.NACK, requeue)

    # time

    @property
    def now(self) -> datetime:
        """The time on the broker's wall."""
        return self._room.now

    def advance(self, by: timedelta) -> None:
        """Let time pass; everything due on the way happens in its order."""
        until = self.now + by
        while self.tick(until):
            pass

    def tick(self, until: datetime) -> bool:
        """Go to the next moment at which something expires; False once `until` is reached."""
        moments = [due for line in self._room.lines.values() if (due := line.due()) is not None]
        moment = min(moments, default=None)
        if moment is None or moment > until:
            self._room.now = max(self.now, until)
            return False
        self._room.now = max(self.now, moment)
        self._move()
        return True

    # looking

    @property
    def journal(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        return tuple(self._room.journal)

    def letters(self, queue: str) -> tuple[Letter, ...]:
        """The letters that stand ready in a queue, first one first."""
        return tuple(place.letter for place in self._line(queue).ready)

    def unsettled(self, queue: str) -> tuple[Letter, ...]:
        """The letters of a queue that somebody has and did not settle yet."""
        return tuple(place.letter for place in self._line(queue).out.values())

    def held(self, queue: str) -> tuple[Letter, ...]:
        """Dead letters that an at-least-once queue keeps because nothing takes them."""
        return tuple(self._line(queue).held)

    def lost(self) -> tuple[Event, ...]:
        """Every letter that is gone although nobody acknowledged it, with the reason."""
        return tuple(event for event in self._room.journal if event.what is Happening.LOST)

    # inside

    def _line(self, queue: str) -> Line:
        return self._room.lines[self.topology.queue(queue).name]

    def _tag(self) -> int:
        self._tags += 1
        return self._tags

    def _settle(self, delivery: Delivery) -> tuple[Line, Place]:
        line = self._line(delivery.queue)
        if delivery.tag not in line.out:
            raise LookupError(
                f"delivery {delivery.tag} of queue {line.name!r} is settled already: settle once"
            )
        for consumer in self._consumers:
            consumer.outstanding.discard(delivery.tag)
        return line, line.out.pop(delivery.tag)

    def _refuse(self, delivery: Delivery, method: Method, requeue: bool) -> None:
        line, place = self._settle(delivery)
        refuse = self._room.give_back if requeue else self._room.discard
        refuse(line, place, method)
        self._move()

    def _move(self) -> None:
        """Expire and hand out until nothing moves; a callback that settles joins the loop."""
        if self._is_moving:
            return
        self._is_moving = True
        try:
            while (
                self._room.expire_one(fresh=False)
                or self._hand_out_one()
                or self._room.expire_one(fresh=True)
            ):
                pass
        finally:
            self._is_moving = False
            self._room.round += 1

    def _hand_out_one(self) -> bool:
        for line in self._room.lines.values():
            consumer = ready_consumer(self._consumers, line.name) if line.ready else None
            if consumer is not None:
                self._hand_to(consumer, line)
                return True
        return False

    def _hand_to(self, consumer: Consumer, line: Line) -> None:
        # Whoever is served goes to the back, so that consumers take turns.
        self._consumers.remove(consumer)
        self._consumers.append(consumer)
        delivery = self._room.hand_out(line, self._tag(), polled=False)
        if consumer.no_ack:
            self._settle(delivery)
        else:
            consumer.outstanding.add(delivery.tag)
        consumer.receive(delivery)
