"""`/api/v1/audit`: who did what, when, to how many letters, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from service.ledger.audit import Asked, Entry, page
from service.ledger.book import Book
from service.web.api.asking import PageAsked, Words
from service.web.api.cursors import cursor, number_of
from service.web.problems import documented

PATH = "/api/v1/audit"
KIND = "audit"


class DeedLine(BaseModel):
    """A line of the audit."""

    number: int
    at: datetime
    who: str
    action: str
    subject: str = Field(description="`cause:…`, `letter:…`, `replay:…`, `route:…`, or `letters`.")
    how_many: int
    why: str
    details: dict[str, Any]


class Deeds(BaseModel):
    """A page of the audit, newest first."""

    items: list[DeedLine]
    next: str | None = Field(None, description="The cursor of the next page; null at the end.")


class DeedsAsked(PageAsked):
    """Which lines: everything that is given must hold."""

    who: Words | None = None
    action: Words | None = Field(None, examples=["letters.discard"])
    subject: Words | None = Field(None, examples=["cause:4f6c0a1b2c3d4e5f"])


def router(book: Book) -> APIRouter:
    """Reading; nothing changes the audit."""
    routes = APIRouter(prefix=PATH, tags=["audit"])

    @routes.get("", responses=documented(401, 403, 422, 503))
    async def list_(asked: Annotated[DeedsAsked, Query()]) -> Deeds:
        """A page of the audit, newest first."""
        wanted = Asked(asked.who, asked.action, asked.subject)
        before = number_of(asked.cursor, KIND)
        entries = await page(book, wanted, before, asked.limit + 1)
        shown = entries[: asked.limit]
        more = len(entries) > asked.limit
        return Deeds(
            items=[_line(entry) for entry in shown],
            next=cursor(KIND, shown[-1].number) if more else None,
        )

    return routes


def _line(entry: Entry) -> DeedLine:
    deed = entry.deed
    return DeedLine(
        number=entry.number,
        at=entry.at,
        who=deed.who,
        action=deed.action,
        subject=deed.subject,
        how_many=deed.how_many,
        why=deed.why,
        details=dict(deed.details),
    )
