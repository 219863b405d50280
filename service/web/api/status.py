"""`/api/v1/status`: how the office stands, in one answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from service.core.states import CauseState, LetterState, ReplayState
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.figures import figures
from service.web.access import Role
from service.web.api.letters import Clock, Who, utc_now
from service.web.health import Check
from service.web.problems import documented

PATH = "/api/v1/status"


class HealthBody(BaseModel):
    """One part the office needs."""

    model_config = ConfigDict(from_attributes=True)

    ok: bool
    says: str


class RunningReplay(BaseModel):
    """A replay that has not ended."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    state: ReplayState
    total: int


class LedgerFigures(BaseModel):
    """How the ledger stands."""

    model_config = ConfigDict(from_attributes=True)

    letters: dict[LetterState, int]
    flows: dict[str, int] = Field(description="Open letters of each flow.")
    oldest: datetime | None = Field(description="When the oldest open letter was buried.")
    per_minute: float = Field(description="New letters a minute, lately.")
    usual_per_minute: float = Field(description="Burials a minute over the last day.")
    causes: dict[CauseState, int]
    replays: list[RunningReplay] = Field(description="Those that have not ended.")


class You(BaseModel):
    """Whom the office takes you for."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    role: Role


class Status(BaseModel):
    """How the office stands."""

    version: str
    health: dict[str, HealthBody]
    ledger: LedgerFigures | None = Field(description="null while the database is away.")
    edit: bool = Field(description="Whether letters may be edited here.")
    you: You


def router(
    book: Book,
    checks: Mapping[str, Check],
    version: str,
    *,
    may_edit: bool = False,
    clock: Clock = utc_now,
) -> APIRouter:
    """One request; it answers while the database is away, and says so."""
    routes = APIRouter(prefix=PATH, tags=["status"])

    @routes.get("", responses=documented(401, 403))
    async def status(who: Who) -> Status:
        """Health, letters by state and flow, the oldest, intake per minute, running replays."""
        health = {name: HealthBody.model_validate(check()) for name, check in checks.items()}
        try:
            ledger = LedgerFigures.model_validate(await figures(book, clock()))
        except LedgerAway as away:
            health["database"], ledger = HealthBody(ok=False, says=str(away)), None
        you = You.model_validate(who)
        return Status(version=version, health=health, ledger=ledger, edit=may_edit, you=you)

    return routes
