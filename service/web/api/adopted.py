"""`/api/v1/adopted`: foreign dead-letter queues whose letters the ledger takes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Protocol

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from service.web.api.asking import Said, Short
from service.web.api.letters import Who
from service.web.problems import Problem, documented

PATH = "/api/v1/adopted"
QUEUE = r"^[^\x00-\x1f\x7f]{1,255}$"

Source = Literal["settings", "operator"]


@dataclass(frozen=True, slots=True)
class Adopted:
    """A queue, who adopted it and when; those of the settings were adopted by nobody."""

    queue: str
    source: Source
    who: str = ""
    adopted_at: datetime | None = None
    says: str = ""


class Adoptions(Protocol):
    """The office's use cases; each writes its deed."""

    async def every(self) -> Sequence[Adopted]:
        """All adopted queues."""
        ...

    async def adopt(self, queue: str, who: str, why: str) -> str:
        """Take a queue in; "" when it is, else a sentence why it cannot be."""
        ...

    async def release(self, queue: str, who: str, why: str) -> bool:
        """Take no more letters from it; False where nobody had adopted it."""
        ...


class AdoptedLine(BaseModel):
    """An adopted queue."""

    model_config = ConfigDict(from_attributes=True)

    queue: str
    source: Source = Field(description="Named in the settings, or adopted by an operator.")
    who: str
    adopted_at: datetime | None
    says: str = Field(description="What is wrong with it; empty when nothing is.")


class AdoptedQueues(BaseModel):
    """All adopted queues."""

    items: list[AdoptedLine]
    next: str | None = None


class Adopt(Said):
    """Which queue."""

    queue: Annotated[str, Field(pattern=QUEUE), Short] = Field(examples=["orders.dlq"])


QueuePath = Annotated[str, Path(description="The queue's name.", min_length=1, max_length=255)]


def router(adoptions: Adoptions) -> APIRouter:
    """Three requests."""
    routes = APIRouter(prefix=PATH, tags=["adopted"])

    @routes.get("", responses=documented(401, 403, 503))
    async def list_() -> AdoptedQueues:
        """Every adopted queue."""
        found = await adoptions.every()
        return AdoptedQueues(items=[AdoptedLine.model_validate(one) for one in found])

    @routes.post("", status_code=201, responses=documented(401, 403, 409, 413, 422, 503))
    async def adopt(asked: Adopt, who: Who) -> AdoptedLine:
        """Take the letters of a queue into the ledger. Adopting it twice is adopting it once."""
        if wrong := await adoptions.adopt(asked.queue, who.name, asked.why):
            raise _refused(wrong)
        found = {one.queue: one for one in await adoptions.every()}
        return AdoptedLine.model_validate(
            found.get(asked.queue) or Adopted(asked.queue, "operator", who.name)
        )

    @routes.delete("/{queue:path}", status_code=204, responses=documented(401, 403, 404, 503))
    async def release(queue: QueuePath, who: Who) -> Response:
        """Take no more letters from it. What is in the ledger stays."""
        if "\x00" in queue or not await adoptions.release(queue, who.name, ""):
            raise _unknown()
        return Response(status_code=204)

    return routes


def _refused(wrong: str) -> Problem:
    hint = "Name a dead-letter queue that is not one of this service's own."
    return Problem(409, "The queue cannot be adopted", wrong, hint=hint)


def _unknown() -> Problem:
    hint = "GET /api/v1/adopted lists them; those of the settings are released in the settings."
    return Problem(404, "No such adopted queue", "No operator has adopted this queue.", hint=hint)
