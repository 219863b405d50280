"""The HTTP API: one FastAPI application out of the routers that the rooms bring."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.web.problems import Problem, answer_problems

LARGEST = 64 * 1024  # bytes of a request


def create_api(routers: Iterable[APIRouter], version: str) -> FastAPI:
    """Every other path is a problem 404. The stock documentation pages load from elsewhere: left out."""
    app = FastAPI(
        title="Dead Letter Office",
        version=version,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    answer_problems(app)
    for router in routers:
        app.include_router(router)
    app.add_middleware(Bounded)
    return app


class Bounded:
    """Reads no more of a request than anybody needs, whatever its length says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what is received; what is too much is a problem where the body is read."""
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > LARGEST:
                raise _too_large()
            return message

        await self._app(scope, bounded, send)


def _too_large() -> Problem:
    return Problem(
        413,
        "The request is too large",
        f"A request has at most {LARGEST} bytes.",
        hint="Send less.",
    )
