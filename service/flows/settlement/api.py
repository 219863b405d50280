"""The door of the payment story: `POST /api/v1/transactions`, `GET /api/v1/transactions/{id}`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, assert_never
from uuid import UUID, uuid4

from fastapi import APIRouter, Header, Response
from pydantic import BaseModel, ConfigDict, Field

from service.flows.desk import Clock, utc_now
from service.flows.settlement import letters
from service.ledger.away import LedgerAway
from service.ledger.book import Book
from service.ledger.transactions import (
    Draft,
    KeyTaken,
    Recorded,
    Status,
    Transaction,
    Unknown,
    find,
    record,
)
from service.web.problems import Problem, documented

PATH = "/api/v1/transactions"


class NewTransaction(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(extra="forbid")

    account: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,63}$")] = Field(
        description="Whose account: 1 to 64 letters, digits, spaces and . _ : -",
        examples=["ACME-1"],
    )
    amount: Decimal = Field(
        gt=0, max_digits=15, decimal_places=2, description="How much.", examples=["19.90"]
    )
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        description="Of what, as ISO 4217 has it.", examples=["EUR"]
    )
    reference: Annotated[str, Field(max_length=140, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        "", description="Words for people; 140 characters at most.", examples=["invoice 42"]
    )

    def draft(self) -> Draft:
        """As the ledger writes it."""
        return Draft(self.account, f"{self.amount:.2f}", self.currency, self.reference)


class Made(BaseModel):
    """A transaction as it was made."""

    id: UUID
    status: Status = Status.CREATED
    account: str
    amount: str
    currency: str
    reference: str
    created_at: datetime


class Seen(Made):
    """A transaction as it stands."""

    processed_at: datetime | None = None
    settled_at: datetime | None = None
    attempts: int = Field(0, description="How often the bank was asked.")
    bank_reference: str | None = None
    dead_at: datetime | None = Field(None, description="When its letter was given up.")
    dead_reason: str | None = Field(None, description="Why it was given up.")


Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="Sent twice, the request makes one transaction and gets the same answer.",
    ),
]


def router(book: Book, written: Callable[[], None], clock: Clock = utc_now) -> APIRouter:
    """The two requests; `written` is told that there is a letter to send."""
    routes = APIRouter(prefix=PATH, tags=["transactions"])

    @routes.post("", status_code=201, responses=documented(409, 413, 422, 503))
    async def make(wanted: NewTransaction, response: Response, key: Key = None) -> Made:
        """Make a transaction. It is settled later: ask for it at the Location."""
        new = Transaction(str(uuid4()), wanted.draft(), Status.CREATED, clock())
        try:
            done = await record(book, new, key, letters.created)
        except LedgerAway:
            raise _away() from None
        match done:
            case Recorded(transaction):
                written()
                response.headers["Location"] = f"{PATH}/{transaction.id}"
                return Made.model_validate(_made(transaction))
            case KeyTaken(by):
                raise _taken(by)
            case never:
                assert_never(never)

    @routes.get("/{id}", responses=documented(404, 503))
    async def show(id: str) -> Seen:
        """How far a transaction has come."""
        try:
            found = await find(book, _id(id))
        except LedgerAway:
            raise _away() from None
        match found:
            case Transaction():
                return _seen(found)
            case Unknown():
                raise _unknown()
            case never:
                assert_never(never)

    return routes


def _id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise _unknown() from None


def _away() -> Problem:
    return Problem(
        503,
        "The ledger is away",
        "The database cannot be used now, so nothing was written.",
        hint="Try again with the same Idempotency-Key; /readyz says what is wrong.",
    )


def _unknown() -> Problem:
    hint = f"POST {PATH} answers with the id, and with a Location to ask at."
    return Problem(404, "No such transaction", "There is no transaction with this id.", hint=hint)


def _taken(by: str) -> Problem:
    return Problem(
        409,
        "The Idempotency-Key is taken",
        f"Another request with this key made transaction {by}.",
        hint="A new request needs a new key; to repeat the old one, send exactly the same body.",
    )


def _made(transaction: Transaction) -> dict[str, object]:
    draft = transaction.draft
    return {
        "id": transaction.id,
        "account": draft.account,
        "amount": draft.amount,
        "currency": draft.currency,
        "reference": draft.reference,
        "created_at": transaction.created_at,
    }


def _seen(transaction: Transaction) -> Seen:
    return Seen.model_validate(
        {
            **_made(transaction),
            "status": transaction.status,
            "processed_at": transaction.processed_at,
            "settled_at": transaction.settled_at,
            "attempts": transaction.attempts,
            "bank_reference": transaction.bank_reference,
            "dead_at": transaction.dead_at,
            "dead_reason": transaction.dead_reason,
        }
    )
