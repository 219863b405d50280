"""The kinds of letters on FreeFlow's channels: their headers, and examples the flow itself has written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from service.core import marks
from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.outcome import Failed
from service.core.plan import plan
from service.edge.header_schema import Count, Number, Text, always, sometimes
from service.edge.pages import Example, Kind
from service.flows.freeflow import topology as tables
from service.flows.freeflow.policy import Rules, flow

Headers = Mapping[str, object]

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
LETTER, BODY = "document-42", '{"document": 42, "title": "Annual report"}'
DOCUMENTS = flow("document", Rules(), marks.Seal(b"the key of the examples"))


class FreeflowEventHeaders(BaseModel):
    """The sender's own headers; an event that comes back has these too."""

    model_config = ConfigDict(extra="allow", frozen=True)

    retries: Number = sometimes(marks.RETRY_COUNT, "Which retry this is; absent at first.")
    exchange: Text = sometimes(marks.ORIGINAL_EXCHANGE, "The exchange it was first published to.")
    key: Text = sometimes(marks.ORIGINAL_ROUTING_KEY, "The key it was first published with.")


class FreeflowWaitingHeaders(BaseModel):
    """The sender's own headers, plus these; each replaces what an earlier retry had written."""

    model_config = ConfigDict(extra="allow", frozen=True)

    retries: Count = always(marks.RETRY_COUNT, "The number of the retry it waits for.")
    exchange: str = always(marks.ORIGINAL_EXCHANGE, "The exchange it was first published to.")
    key: str = always(marks.ORIGINAL_ROUTING_KEY, "The key it was first published with.")
    queue: str = always(marks.ORIGINAL_QUEUE, "The queue whose handler failed.")
    letter: str = always(marks.LETTER, "The letter's id: its `message_id`, or one made for it.")
    flow: str = always(marks.FLOW, "The flow that takes care of it: here `freeflow`.")
    first_failure: datetime = always(marks.FIRST_FAILURE, "When it failed first, in UTC.")
    counts: dict[str, Count] = always(marks.DEATHS, "Not used here: empty.")
    error: Text = sometimes(marks.ERROR, "What the handler raised, in words; 1 kB at most.")
    error_type: Text = sometimes(marks.ERROR_TYPE, "The class of what it raised.")
    due: Number = sometimes(marks.DUE, "When the wait is over, in milliseconds since 1970.")
    signature: Text = sometimes(
        marks.SIGNATURE, "HMAC-SHA256 over id, flow, origin, count and first failure, in hex."
    )


class FreeflowDeadHeaders(FreeflowWaitingHeaders):
    """The letter's whole story, and why it was given up."""

    retries: Count = always(marks.RETRY_COUNT, "How many retries were made.")
    reason: str = always(marks.REASON, "Why it was given up, as a person reads it.")


def _failed(headers: Headers) -> Headers:
    """What an event carries on after the handler of `document` raised."""
    back = {**headers, "tenant": "north"}
    envelope = Envelope(LETTER, back, LETTER, NOON, tables.EVENTS.name, "document.created")
    ended = DOCUMENTS.count(envelope).ended(Failed("no such folder", "FolderNotFound"))
    todo = plan(judge(ended, DOCUMENTS.policy("")), ended, DOCUMENTS.ways, DOCUMENTS.seal)
    return todo.sends[0].marks


def _example(name: str, summary: str, headers: Headers) -> Example:
    return Example(name, summary, {"tenant": "north", **headers}, BODY)


_once = _failed({})
_twice = _failed(_once)
_spent = _failed(_failed(_twice))

EVENT = Kind(
    "FreeflowEvent",
    "An event of a domain",
    """
An event as its sender published it, or as it comes back after a wait.

A letter that comes back has the routing key `<domain>.retry`; the one it was first published with is in
`x-original-routing-key`, and that is the one a handler is shown.
""".strip(),
    FreeflowEventHeaders,
    (
        _example("first-delivery", "As it was published", {}),
        _example("retry-1", "Back for the first time", _once),
    ),
)
WAITING = Kind(
    "FreeflowWaitingEvent",
    "An event that waits for its retry",
    """
An event whose handler failed, on its way through a retry queue.

Body and properties are the sender's own, less `expiration` and `user_id`; of the headers, RabbitMQ's
`x-death` and the sender's `CC` and `BCC` are left out.
""".strip(),
    FreeflowWaitingHeaders,
    (
        _example("before-retry-1", "Waiting for its first retry", _once),
        _example("before-retry-2", "Waiting for its second retry", _twice),
    ),
)
DEAD = Kind(
    "FreeflowDeadEvent",
    "An event that was given up",
    """
A letter of the final holding area, with the reason, for people to read and to send back.

A letter that another consumer rejected without requeueing comes here through the queue's dead-letter
exchange: it has RabbitMQ's `x-death` instead of these headers.
""".strip(),
    FreeflowDeadHeaders,
    (_example("retries-spent", "All three retries were made in vain", _spent),),
)
