"""The HTTP API: one FastAPI application out of the routers that it is given."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.web.problems import Problem, answer_problems, documented

LARGEST = 64 * 1024  # bytes of a request
LARGEST_EDIT = 16 * 1024 * 1024
IMPORT = "/api/v1/letters/import"  # is read line by line, with a bound for each
EDIT = re.compile(r"/api/v1/letters/[0-9a-f]{32}/edit")


def create_api(routers: Iterable[APIRouter], version: str) -> FastAPI:
    """Every other path is a problem 404. The stock documentation pages load from elsewhere: left out."""
    app = FastAPI(
        title="Dead Letter Office",
        version=version,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        # A body that is no text, the guard, a request that cannot be meant: of any operation.
        responses=documented(400, 401, 403, 422),
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
        if scope["type"] != "http" or scope["path"] == IMPORT:
            await self._app(scope, receive, send)
            return
        seen, largest = 0, LARGEST_EDIT if EDIT.fullmatch(scope["path"]) else LARGEST

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > largest:
                raise _too_large(largest)
            return message

        await self._app(scope, bounded, send)


def _too_large(largest: int) -> Problem:
    return Problem(
        413,
        "The request is too large",
        f"This request has at most {largest} bytes.",
        hint="Send less.",
    )
