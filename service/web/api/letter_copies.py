"""`/api/v1/letters/export` and `/import`: letters as ndjson, out and in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.copies import Copy, copies, take
from service.ledger.filters import Filter
from service.web.api.asking import FilterOfLetters
from service.web.api.copying import Reading, line_of, lines
from service.web.api.letter_shapes import Imported
from service.web.api.letters import PATH, Clock, Who, utc_now
from service.web.problems import documented

NDJSON = "application/x-ndjson"
BATCH = 200
HEAVY = 8 * 1024 * 1024  # bytes of lines filed at once
IMPORT = f"{PATH}/import"


def router(book: Book, longest_line: int, clock: Clock = utc_now) -> APIRouter:
    """The two requests; no line of an import may be longer than this."""
    routes = APIRouter(prefix=PATH, tags=["letters"])

    @routes.get(
        "/export",
        response_class=StreamingResponse,
        responses={
            200: {"content": {NDJSON: {}}, "description": "A letter a line."},
            **documented(401, 403, 422, 503),
        },
    )
    async def export(asked: Annotated[FilterOfLetters, Query()]) -> StreamingResponse:
        """Every letter of a filter, newest first, with its bytes in base64: what import takes."""
        stream = _lines(book, asked.filter())
        first = await anext(stream, b"")  # a ledger that is away is a problem, not half a file
        headers = {"Content-Disposition": 'attachment; filename="letters.ndjson"'}
        return StreamingResponse(_after(first, stream), media_type=NDJSON, headers=headers)

    @routes.post(
        "/import",
        responses=documented(401, 403, 413, 422, 503),
        openapi_extra={
            "requestBody": {"required": True, "content": {NDJSON: {"schema": {"type": "string"}}}}
        },
    )
    async def import_(request: Request, who: Who) -> Imported:
        """File letters that an export wrote. A letter that is here already stays as it is."""
        reading, done = Reading(), Imported(letters=0, known=0, faulty=0, faults=[])
        deed = Deed(who.name, "letters.import", "letters")
        async for batch in _batches(request.stream(), longest_line, reading):
            taken = await take(book, batch, deed, clock())
            done.letters += taken.new
            done.known += taken.known
        done.faulty, done.faults = reading.faulty, reading.faults
        return done

    return routes


async def _lines(book: Book, wanted: Filter) -> AsyncIterator[bytes]:
    async for copy in copies(book, wanted):
        yield line_of(copy)


async def _after(first: bytes, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for line in stream:
        yield line


async def _batches(
    stream: AsyncIterator[bytes], longest: int, reading: Reading
) -> AsyncIterator[list[Copy]]:
    batch: list[Copy] = []
    weight = 0
    async for line in lines(stream, longest, reading):
        if (copy := reading.copy(line)) is None:
            continue
        batch.append(copy)
        weight += len(line)
        if len(batch) >= BATCH or weight >= HEAVY:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch
