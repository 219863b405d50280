"""A consumer: takes letters out of one queue over a channel of its own, and settles them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from pamqp import commands
from pamqp.base import Frame

from service.edge.wire import frames
from service.edge.wire.channel import Channel
from service.edge.wire.connection import Connection
from service.edge.wire.delivered import Delivered
from service.edge.wire.errors import Lost

Take = Callable[[Delivered], None]
Gone = Callable[["Consumer", Exception], None]
TAG = "letters"


class Consumer(Channel):
    """At most `prefetch` letters are in our hands at a time; the rest waits in the broker."""

    def __init__(
        self, connection: Connection, queue: str, prefetch: int, take: Take, gone: Gone
    ) -> None:
        super().__init__(connection, connection.number())
        self.queue, self.prefetch, self._take, self._gone = queue, prefetch, take, gone
        self.in_hand: dict[int, int] = {}
        """The letters that came and are not settled: their tags and weights, the oldest first."""
        self.received = 0
        """Letters that came so far: the watchdog's pulse."""

    async def start(self) -> None:
        """Open the channel and let letters come; Refused where there is no such queue."""
        await self.open()
        await self.ask(commands.Basic.Qos(0, self.prefetch, False))
        await self.ask(commands.Basic.Consume(queue=self.queue, consumer_tag=TAG))

    async def stop(self) -> None:
        """Let no more letters come; those that came are still to be settled."""
        if self.is_open:
            await self.ask(commands.Basic.Cancel(TAG))

    async def waiting(self) -> tuple[int, int]:
        """How many letters are ready in the queue, and how many consumers it has."""
        answer = await self.ask(commands.Queue.Declare(queue=self.queue, passive=True))
        assert isinstance(answer, commands.Queue.DeclareOk)
        return answer.message_count or 0, answer.consumer_count or 0

    def acknowledge(self, tag: int, *, upto: bool) -> bool:
        """Settle one letter, or all up to it; False where the broker has taken them back meanwhile."""
        if not self.is_open:
            return False
        self.connection.send(frames.ack(self.number, tag, upto=upto))
        settled = 0
        for each in list(takewhile(tag.__ge__, self.in_hand)) if upto else (tag,):
            settled += self.in_hand.pop(each, 0)
        self.connection.weigh(-settled)
        return True

    def reject(self, tag: int, *, requeue: bool) -> bool:
        """Give a letter back to its queue, or to the queue's dead-letter exchange."""
        if not self.is_open:
            return False
        self.connection.send(frames.reject(self.number, tag, requeue=requeue))
        self.connection.weigh(-self.in_hand.pop(tag, 0))
        return True

    def lay_aside(self, tag: int) -> None:
        """A letter whose bytes nobody holds any more stays unsettled, and weighs nothing: the broker
        need not wait for it."""
        if self.in_hand.get(tag):
            self.connection.weigh(-self.in_hand[tag])
            self.in_hand[tag] = 0

    def on_content(self, head: bytes, properties: bytes, body: bytes) -> None:
        """A letter."""
        self.received += 1
        delivered = Delivered(self, head, properties, body)
        self.in_hand[delivered.tag] = delivered.weight
        self.connection.weigh(delivered.weight)
        self._take(delivered)

    def on_method(self, method: Frame) -> None:
        """The broker cancels a consumer whose queue is gone: then the channel is of no use either."""
        if isinstance(method, commands.Basic.Cancel):
            why = Lost(f"the broker ended the consumer of {self.queue}: its queue is gone")
            self.connection.send(
                frames.write(commands.Channel.Close(200, "cancelled", 0, 0), self.number)
            )
            self.end(why)

    def on_end(self, why: Exception) -> None:
        """The broker takes back what is not settled."""
        self.connection.weigh(-sum(self.in_hand.values()))
        self.in_hand.clear()
        self._gone(self, why)
