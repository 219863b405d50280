"""`/api/v1/topology`: what stands on the broker, what is wrong with it, and a drawing."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.topology.drawing import mermaid
from service.topology.faults import Fault
from service.topology.tables import Topology
from service.web.api.readable import plain
from service.web.problems import documented

PATH = "/api/v1/topology"


class ExchangeLine(BaseModel):
    """An exchange."""

    name: str
    type: str


class QueueLine(BaseModel):
    """A queue and its arguments."""

    name: str
    arguments: dict[str, Any]


class BindingLine(BaseModel):
    """What an exchange gives to a queue."""

    exchange: str
    queue: str
    key: str


class FaultLine(BaseModel):
    """Something that is wrong."""

    kind: str
    where: str
    sentence: str


class TopologyBody(BaseModel):
    """The three tables, the faults, and the drawing."""

    exchanges: list[ExchangeLine]
    queues: list[QueueLine]
    bindings: list[BindingLine]
    faults: list[FaultLine]
    mermaid: str = Field(description="A flowchart, as Mermaid draws it.")


def router(topology: Topology, faults: tuple[Fault, ...]) -> APIRouter:
    """One request; the topology is fixed while the service runs."""
    routes = APIRouter(prefix=PATH, tags=["topology"])
    body = TopologyBody(
        exchanges=[ExchangeLine(name=row.name, type=row.type.value) for row in topology.exchanges],
        queues=[
            QueueLine(name=row.name, arguments=plain(dict(row.arguments)))
            for row in topology.queues
        ],
        bindings=[
            BindingLine(exchange=row.exchange.name, queue=row.queue.name, key=row.key)
            for row in topology.bindings
        ],
        faults=[
            FaultLine(kind=fault.kind.value, where=fault.where, sentence=fault.sentence)
            for fault in faults
        ],
        mermaid=mermaid(topology),
    )

    @routes.get("", responses=documented(401, 403))
    async def show() -> TopologyBody:
        """What the service declares on RabbitMQ, as its settings have it."""
        return body

    return routes
