"""Copies of letters as lines of ndjson: written, read again, and never more in memory than a batch."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from service.core.states import LetterState
from service.ledger.copies import Copy
from service.web.api.asking import CauseId, LetterId, Moment
from service.web.api.letter_shapes import ImportFault
from service.web.api.readable import in_base64

FORMAT = 1
MOST_FAULTS = 20


def _bytes(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("expected base64")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("expected base64") from None


def _clean(value: object) -> object:
    """PostgreSQL refuses NUL in text; half characters are refused by pydantic before."""
    return value.replace("\x00", "\N{SYMBOL FOR NULL}") if isinstance(value, str) else value


Bytes = Annotated[bytes, BeforeValidator(_bytes)]
Cleaned = Annotated[str, BeforeValidator(_clean), Field(max_length=64 * 1024)]
Small = Annotated[int, Field(ge=0, le=2**31 - 1)]


class BurialCopy(BaseModel):
    """An earlier burial, on a line."""

    model_config = ConfigDict(extra="forbid")

    burial: Small
    digest: Bytes
    buried_at: Moment
    cause: CauseId
    reason: Cleaned
    error_type: Cleaned
    error: Cleaned
    retries: Small


class CauseCopy(BaseModel):
    """The cause, on a line."""

    model_config = ConfigDict(extra="forbid")

    id: CauseId
    version: Small
    title: Cleaned
    error_type: Cleaned
    place: Cleaned


class LetterCopy(BaseModel):
    """A letter, on a line: everything that is needed to file it again."""

    model_config = ConfigDict(extra="forbid")

    format: Annotated[int, Field(ge=1, le=FORMAT)]
    id: LetterId
    letter: Cleaned
    state: LetterState
    flow: Annotated[Cleaned, Field(max_length=20)]
    queue: Cleaned
    origin_queue: Cleaned
    exchange: Cleaned
    routing_key: Cleaned
    cause: CauseCopy
    error_type: Cleaned
    error: Cleaned
    place: Cleaned
    reason: Cleaned
    retries: Small
    burials: Small
    replays: Small
    digest: Bytes
    body: Bytes
    headers: Bytes
    properties: Bytes
    facts: dict[str, Any]
    content_type: Cleaned
    first_failure: Moment
    filed_at: Moment
    buried_at: Moment
    changed_at: Moment
    earlier: Annotated[list[BurialCopy], Field(max_length=1_000)] = []

    def copy_of(self) -> Copy:
        """As the ledger takes it."""
        row = self.model_dump(exclude={"format", "earlier", "cause"})
        row |= {"cause": self.cause.id, "size": len(self.body), "state": self.state.value}
        row["facts"] = json.loads(_clean_json(self.facts))
        earlier = tuple(burial.model_dump() for burial in self.earlier)
        return Copy(row, earlier, self.cause.model_dump())


def line_of(copy: Copy) -> bytes:
    """A letter as one line."""
    row = {name: value for name, value in copy.letter.items() if name != "size"}
    cause = copy.cause or {
        "id": row["cause"],
        "version": 0,
        **{name: row[name] for name in ("error_type", "place")},
        "title": row["error_type"] or row["reason"],
    }
    line = {"format": FORMAT, **row, "cause": dict(cause), "earlier": list(copy.burials)}
    return json.dumps(line, default=_said, separators=(",", ":")).encode() + b"\n"


@dataclass(slots=True)
class Reading:
    """What has been read of an import so far."""

    line: int = 0
    faulty: int = 0
    faults: list[ImportFault] = field(default_factory=list)

    def complain(self, what: str) -> None:
        """Count a line that cannot be taken; the first ones are told."""
        self.faulty += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(ImportFault(line=self.line, what=what))

    def copy(self, line: bytes) -> Copy | None:
        """The letter on this line, or a complaint."""
        self.line += 1
        if not line.strip():
            return None
        try:
            return LetterCopy.model_validate_json(line).copy_of()
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            self.complain(f"{where}: {first['msg']}"[:200])
        except (ValueError, RecursionError):
            self.complain("it is not JSON that can be kept")
        return None


async def lines(
    stream: AsyncIterator[bytes], longest: int, reading: Reading
) -> AsyncIterator[bytes]:
    """The lines of a stream; one that is too long is passed over, not held."""
    held, skipping = b"", False
    async for chunk in stream:
        *whole, rest = (held + chunk).split(b"\n") if not skipping else chunk.split(b"\n")
        for number, line in enumerate(whole):
            if skipping and number == 0:
                skipping = False
            elif len(line) > longest:
                _too_long(reading, longest)
            else:
                yield line
        held = rest
        if skipping or len(held) > longest:
            if not skipping:
                _too_long(reading, longest)
            skipping, held = True, b""
    if held and not skipping:
        yield held


def _too_long(reading: Reading, longest: int) -> None:
    reading.line += 1
    reading.complain(f"the line is longer than {longest} bytes")


def _said(value: object) -> object:
    match value:
        case bytes() | memoryview() | bytearray():
            return in_base64(bytes(value))
        case datetime():
            return value.isoformat()
        case Mapping():
            return dict(value)
        case _:
            return str(value)


def _clean_json(facts: Mapping[str, Any]) -> str:
    """JSON that PostgreSQL takes: no NUL, no half character, no number that is none."""
    text = json.dumps(facts, allow_nan=False)
    if len(text) > 64 * 1024:
        raise ValueError("facts are too large")
    return text.replace("\\u0000", "\\u2400")
