"""`/api/v1/events`: server-sent events, so that a page knows when to look again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from service.web.problems import Problem, documented
from service.web.streams import Streams

PATH = "/api/v1/events"
MEDIA = "text/event-stream"


def router(streams: Streams) -> APIRouter:
    """One request that is answered until somebody hangs up."""
    routes = APIRouter(prefix=PATH, tags=["events"])

    @routes.get(
        "",
        response_class=StreamingResponse,
        responses={
            200: {
                "content": {MEDIA: {}},
                "description": "Events `letters`, `causes`, `replays`, `health`, each with a small"
                " JSON of counts and ids: first how things are, then whenever they change.",
            },
            **documented(401, 403, 503),
        },
    )
    async def events() -> StreamingResponse:
        """What changes, as it changes; a comment every 15 seconds when nothing does."""
        if streams.is_full:
            raise _full()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_written(streams), media_type=MEDIA, headers=headers)

    return routes


async def _written(streams: Streams) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for told in streams.listen():
        if told is None:
            yield b": nothing new\n\n"
        else:
            kind, data = told
            text = json.dumps(data, separators=(",", ":"))
            yield f"event: {kind}\ndata: {text}\n\n".encode()


def _full() -> Problem:
    hint = "Close another page of this service, or try again later."
    return Problem(503, "Too many listen", "No more streams are opened now.", hint=hint)
