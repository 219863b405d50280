"""`/api/v1/events`: server-sent events, so that a page knows when to look again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.web.problems import Problem, documented
from service.web.streams import Listener, Streams

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
        if (listener := streams.seat()) is None:
            raise _full()
        return Heard(streams, listener)

    return routes


class Heard(StreamingResponse):
    """A stream that gives its seat back however it ends, even where it never began."""

    def __init__(self, streams: Streams, listener: Listener) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_written(streams, listener), media_type=MEDIA, headers=headers)
        self._streams, self._listener = streams, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until somebody hangs up."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._listener)


async def _written(streams: Streams, listener: Listener) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for told in streams.listen(listener):
        if told is None:
            yield b": nothing new\n\n"
        else:
            kind, data = told
            text = json.dumps(data, separators=(",", ":"))
            yield f"event: {kind}\ndata: {text}\n\n".encode()


def _full() -> Problem:
    hint = "Close another page of this service, or try again later."
    return Problem(503, "Too many listen", "No more streams are opened now.", hint=hint)
