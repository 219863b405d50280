"""The AsyncAPI document: what an integrator publishes or dead-letters where, and what comes back."""

from __future__ import annotations

from collections.abc import Callable

from faststream.asgi import AsgiResponse, get
from faststream.asgi.response import JSONResponse
from faststream.asgi.types import ASGIApp, Scope
from faststream.specification import AsyncAPI

from service.topology.tables import Topology


def specification(topology: Topology, version: str) -> AsyncAPI:
    """The document's factory, for FastStream's application."""
    return AsyncAPI(title="Dead Letter Office", version=version)


def json_route(document: Callable[[], object]) -> ASGIApp:
    """`GET /asyncapi.json`."""

    @get
    async def asyncapi(scope: Scope) -> AsgiResponse:
        return JSONResponse(document(), 200)

    return asyncapi
