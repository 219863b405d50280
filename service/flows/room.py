"""A room: what a flow brings into the running service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from fastapi import APIRouter
from faststream.rabbit import RabbitBroker

from service.edge.carry_out import Mend
from service.edge.listeners import Listeners
from service.edge.post import Post
from service.edge.reading import Limits
from service.edge.wire.job import Clerk
from service.flows.desk import Desk
from service.flows.flow import Flow
from service.topology.tables import Topology


@dataclass(frozen=True, slots=True)
class Reception:
    """What every room shares: the post, the limits, who listens, how the topology is mended."""

    post: Post
    limits: Limits
    listeners: Listeners
    mend: Mend

    def desk(self, flow: Flow) -> Desk:
        """A desk for one flow."""
        return Desk(flow, self.post, self.limits, self.listeners, self.mend)


@dataclass(frozen=True, slots=True)
class DeadQueue:
    """A queue whose letters the ledger takes in: for people, or (`discarded`) only as a record."""

    name: str
    discarded: bool = False


@dataclass(frozen=True, slots=True)
class Wire:
    """Queues whose letters are relayed over the wire: their subscribers document them, and rest."""

    clerks: Callable[[Reception], Mapping[str, Clerk]]
    prefetch: int


@dataclass(frozen=True, slots=True)
class Room:
    """A flow, ready to be opened: its topology, its subscribers, and work beside them.

    `work` runs as long as the service does; each is started with the service and cancelled with it,
    and must outlive any fault of the broker or the database by itself. `api` is what it answers
    over HTTP, `wire` what it relays without a subscriber, `dead` where its dead letters lie, `trouble` what
    keeps it from its work (empty: nothing).
    """

    name: str
    topology: Topology
    subscribe: Callable[[RabbitBroker, Reception], None]
    wire: Wire | None = None
    work: tuple[Callable[[Reception], Awaitable[None]], ...] = ()
    api: APIRouter | None = None
    dead: tuple[DeadQueue, ...] = ()
    trouble: Callable[[], str] | None = None
