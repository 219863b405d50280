"""The middleware for a Python team's own FastStream broker: plain handlers that raise, retried by a flow."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aio_pika
import structlog
from aio_pika import IncomingMessage
from aiormq.exceptions import AMQPError
from faststream import AckPolicy, BaseMiddleware, Context
from faststream.rabbit import RabbitQueue
from faststream.rabbit.response import RabbitPublishCommand
from faststream.rabbit.subscriber import RabbitSubscriber
from yarl import URL

from service.core.marks import Seal
from service.edge import tolerance
from service.edge.declare import NotDeclared, declare
from service.edge.listeners import Listeners
from service.edge.post import Post, RabbitPost
from service.edge.reading import Limits
from service.edge.sentences import sentence
from service.flows.desk import Clock, Desk, utc_now
from service.flows.freeflow.attempt import Attempt
from service.flows.freeflow.policy import Rules
from service.web.journal import Journal

if TYPE_CHECKING:
    from faststream._internal.context import ContextRepo

FAULTS = (AMQPError, NotDeclared, OSError, TimeoutError, RuntimeError)
LARGEST_BODY = 4 * 1024 * 1024


class Retrying:
    """`RabbitBroker(url, middlewares=[retrying])`, and `FastStream(broker, lifespan=retrying.lifespan)`.

    It settles every delivery itself, so the subscribers' `ack_policy` must be MANUAL. Publishing has
    a connection of its own: under a broker's alarm a shared one would hold back acknowledgements.
    """

    def __init__(
        self,
        url: str,
        rules: Rules | None = None,
        *,
        key: str = "",
        max_body: int = LARGEST_BODY,
        listeners: Listeners | None = None,
        post: Post | None = None,
        clock: Clock = utc_now,
    ) -> None:
        tolerance.install()
        self.rules = rules or Rules()
        self._url = str(URL(url).update_query(name="retrying post", heartbeat="10"))
        ours = frozenset(exchange.name for exchange in self.rules.topology.exchanges)
        self._own = RabbitPost(self._url, timeout=10, ours=ours)
        self._is_open = post is not None
        tell, limits = listeners or Listeners(Journal()), Limits(max_body)
        self._desks = {
            queue: Desk(flow, post or self._own, limits, tell, self._mend, clock)
            for queue, flow in self.rules.flows(Seal(key.encode())).items()
        }

    def queue(self, domain: str) -> RabbitQueue:
        """The queue of a domain, for the subscriber; LookupError where there is no such domain."""
        return self.rules.queue(domain)

    def lifespan(self, app: Any = Context("app")) -> AbstractAsyncContextManager[None]:  # noqa: B008
        """For `FastStream(broker, lifespan=retrying.lifespan)`; within a lifespan of your own,
        `async with retrying.lifespan(app)`."""
        return self._opened(app)

    def __call__(
        self, msg: IncomingMessage | None, /, *, context: ContextRepo
    ) -> BaseMiddleware[RabbitPublishCommand, Any]:
        """FastStream makes a middleware for each delivery, and for each message that is published."""
        subscriber = context.get("handler_")
        if msg is None or not isinstance(subscriber, RabbitSubscriber):
            return BaseMiddleware(msg, context=context)
        if why := self._unfit(subscriber) or ("" if self._is_open else NOT_OPEN):
            refuse(msg, why)
        return Attempt(msg, self._desks[name_of(subscriber)], self.rules, context=context)

    @asynccontextmanager
    async def _opened(self, app: Any) -> AsyncIterator[None]:
        """Check, declare, open the post; and close it with the application."""
        if faults := list(self._faults(app)):
            sys.exit("\n".join(faults))
        try:
            await self._declare()
            await self._own.open()
        except FAULTS as error:
            sys.exit(sentence(error, self._url))
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            await self._own.close()

    def _faults(self, app: Any) -> Iterator[str]:
        for broker in app.brokers:
            for subscriber in broker.subscribers:
                if self in subscriber._broker_middlewares and (why := self._unfit(subscriber)):
                    yield why

    def _unfit(self, subscriber: RabbitSubscriber) -> str:
        """Why letters of this subscriber cannot be retried, and what to write instead."""
        name = name_of(subscriber)
        if name not in self._desks:
            return (
                f"the queue {name} has no retry queues: subscribe to one of {', '.join(self._desks)},"
                " or put Retrying on a router of its own"
            )
        if subscriber.ack_policy is not AckPolicy.MANUAL:
            return (
                f"the subscriber of {name} must have ack_policy=AckPolicy.MANUAL:"
                " Retrying settles its letters, any other policy would lose them or loop"
            )
        domain = name.rpartition(".")[2]
        if subscriber.queue.declare and subscriber.queue != self.queue(domain):
            return (
                f"the queue {name} stands with other arguments:"
                f' subscribe to retrying.queue("{domain}")'
            )
        return ""

    async def _declare(self) -> None:
        connection = await aio_pika.connect(self._url, timeout=10)
        async with connection:
            await declare(self.rules.topology, connection)

    async def _mend(self) -> None:
        """Somebody took a piece of the topology away while letters were moving."""
        try:
            await self._declare()
        except FAULTS as error:
            structlog.get_logger("dlo.retrying").warning(
                sentence(error, self._url), action="not_mended"
            )


NOT_OPEN = "Retrying is not open: FastStream(broker, lifespan=retrying.lifespan) opens it"


def name_of(subscriber: RabbitSubscriber) -> str:
    """The queue as it is called on the broker, a router's prefix included."""
    name: str = subscriber.queue.add_prefix(subscriber._outer_config.prefix).name
    return name


def refuse(message: IncomingMessage, why: str) -> None:
    """End the application rather than take a letter that we could not settle: it stays unsettled,
    whatever the subscriber's policy, and goes back to its queue."""
    message.lock()
    structlog.get_logger("dlo.retrying").error(why, action="refused_to_work")
    sys.exit(why)
