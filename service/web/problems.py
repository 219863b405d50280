"""Errors of the API as RFC 9457 problems: what is wrong, and a hint what to do."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from service.ledger.away import LedgerAway

JSON = "application/problem+json"
NO_HINT = "The API's own description is at /api/openapi.json."


class Wrong(BaseModel):
    """One part of a request that cannot be used."""

    where: str
    what: str


class ProblemBody(BaseModel):
    """A problem as it is answered."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    hint: str
    errors: list[Wrong] = Field(
        default_factory=list, description="Each part of the request that is wrong."
    )


class Problem(HTTPException):
    """Raised by a handler that cannot do what it was asked."""

    def __init__(self, status: int, title: str, detail: str, *, hint: str) -> None:
        super().__init__(status, detail)
        self.body = ProblemBody(title=title, status=status, detail=detail, hint=hint)


def answer_of(problem: Problem) -> JSONResponse:
    """The answer to a request that never reached a handler."""
    return _answer(problem.body, problem.headers)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For OpenAPI: these answers are problems."""
    schema = {"$ref": "#/components/schemas/ProblemBody"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "model": ProblemBody,
            "content": {JSON: {"schema": schema}},
        }
        for status in statuses
    }


def answer_problems(app: FastAPI) -> None:
    """Have every error of this application answered as a problem."""
    app.add_exception_handler(AnyHTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(LedgerAway, _away)


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AnyHTTPException)
    if isinstance(error, Problem):
        return _answer(error.body, error.headers)
    title = HTTPStatus(error.status_code).phrase
    plain = ProblemBody(
        title=title, status=error.status_code, detail=str(error.detail), hint=NO_HINT
    )
    return _answer(plain, error.headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """What was sent is never repeated: it may be anything, a card number or half a character."""
    assert isinstance(error, RequestValidationError)
    wrong = [
        Wrong(where=_clean(".".join(map(str, one["loc"]))), what=_clean(str(one["msg"])))
        for one in error.errors()
    ]
    return _answer(
        ProblemBody(
            title="The request cannot be used",
            status=422,
            detail="; ".join(f"{one.where}: {one.what}" for one in wrong[:5]),
            hint="Correct what `errors` names and send it again.",
            errors=wrong[:20],
        )
    )


async def _away(_request: Request, _error: Exception) -> JSONResponse:
    """Which database, and what is wrong with it, is for `/readyz` to say."""
    return _answer(
        ProblemBody(
            title="The ledger is away",
            status=503,
            detail="The database cannot be used now, or took too long; nothing was changed.",
            hint="Try again; /readyz says what is wrong. A narrower filter is answered sooner.",
        ),
        {"Retry-After": "5"},
    )


def _answer(body: ProblemBody, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(body.model_dump(), body.status, dict(headers or {}), media_type=JSON)


def _clean(text: str) -> str:
    """Names of unknown fields are the sender's: half characters could not be encoded."""
    return text.encode("utf-8", "replace").decode()[:200]
