"""The kinds of letters on the central processor's channels: their headers, and examples of each."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from service.core import marks
from service.edge.header_schema import Count, Number, Text, always, sometimes
from service.edge.pages import Kind
from service.flows.dlq_processor import examples
from service.flows.dlq_processor.policy import NAME


class Headers(BaseModel):
    """The sender's own headers travel along untouched."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Death(Headers):
    """How a letter left a queue, as RabbitMQ writes it."""

    queue: str = Field(description="The queue it left.")
    reason: Literal["rejected", "expired", "maxlen", "delivery_limit"] = Field(
        description="Why it left."
    )
    exchange: str = Field(description="The exchange it had been published to.")
    keys: list[str] = always("routing-keys", "The routing keys it had been published with.")
    count: int = Field(ge=1, description="How often it left this queue for this reason.")


class DeadLetteredHeaders(Headers):
    """RabbitMQ vouches for where the letter failed: the queue's dead-lettering writes `x-death`."""

    deaths: list[Death] = always(
        "x-death", "Newest first: the first entry names the queue in which the letter failed."
    )


class ReturnedHeaders(Headers):
    """The letter's own headers, plus these; each replaces what an earlier retry had written."""

    retries: Count = always(marks.RETRY_COUNT, "The number of this retry: 1 is the first.")
    exchange: str = always(
        marks.ORIGINAL_EXCHANGE, "The exchange it was first published to; empty is the default one."
    )
    key: str = always(marks.ORIGINAL_ROUTING_KEY, "The routing key it was first published with.")
    queue: str = always(
        marks.ORIGINAL_QUEUE, "The queue it failed in, to which it returns; empty where unknown."
    )
    letter: str = always(
        marks.LETTER,
        "The letter's id: its `message_id`, or one that was made at its first failure.",
    )
    flow: str = always(marks.FLOW, f"The flow that takes care of it: here `{NAME}`.")
    first_failure: datetime = always(marks.FIRST_FAILURE, "When it failed first, in UTC.")
    counts: dict[str, Count] = always(
        marks.DEATHS, "How often it failed so far, by RabbitMQ's reason (`rejected`, `expired`, …)."
    )
    dropped: Number = sometimes(
        marks.DROPPED,
        "Only where the sender's headers left no room for these: how many bytes were left out.",
    )
    signature: Text = sometimes(
        marks.SIGNATURE,
        "HMAC-SHA256 over id, flow, origin, count and first failure, in hex; there where the service"
        " has a key. Copy the headers or drop them, but do not edit them: a changed letter counts as"
        " one that fails for the first time.",
    )


class WaitingHeaders(ReturnedHeaders):
    """As the letter will return, plus why it waits and until when."""

    error: str = always(marks.ERROR, "How the last delivery ended, in words; 1 kB at most.")
    error_type: str = always(marks.ERROR_TYPE, "The kind of that end: RabbitMQ's reason.")
    due: int = always(marks.DUE, "When the wait is over, in milliseconds since 1970.")


class DeadHeaders(ReturnedHeaders):
    """The letter's whole story, and why it was given up."""

    retries: Count = always(marks.RETRY_COUNT, "How many retries were made.")
    error: str = always(marks.ERROR, "How the last delivery ended, in words; 1 kB at most.")
    error_type: Text = sometimes(
        marks.ERROR_TYPE, "The kind of that end: RabbitMQ's reason, or empty where we refused it."
    )
    reason: str = always(marks.REASON, "Why it was given up, as a person reads it; 1 kB at most.")


class DrillHeaders(Headers):
    """Whatever you like; a letter that comes back has `x-retry-count` and its companions."""

    retries: Number = sometimes(marks.RETRY_COUNT, "The number of the retry; absent at first.")


DEAD_LETTERED = Kind(
    "DeadLetteredLetter",
    "A letter that a queue dead-lettered",
    """
A letter as its queue lets go of it: rejected by a consumer, expired, pushed out of a full queue, or
delivered too often.

Body, properties and headers are the sender's own; RabbitMQ adds `x-death`. A letter that has been
retried before has the marks of its last return as well.
""".strip(),
    DeadLetteredHeaders,
    examples.DEAD_LETTERED,
)

WAITING = Kind(
    "WaitingLetter",
    "A letter that waits for its retry",
    """
A failed letter on its way through a delay queue, with its number, its origin and the end of its wait.

Body and properties are the sender's own, less `expiration` and `user_id`; of the headers, RabbitMQ's
`x-death` and the sender's `CC` and `BCC` are left out.
""".strip(),
    WaitingHeaders,
    examples.WAITING,
)

RETURNED = Kind(
    "ReturnedLetter",
    "A letter that comes back",
    """
The letter as your consumer sees it again: the same body and properties, and headers that tell its story.

Read `x-retry-count` to know which retry this is, and `x-original-routing-key` for the key it was
published with: the key of this delivery is the name of your queue. Replies still go to `reply_to`.
""".strip(),
    ReturnedHeaders,
    examples.RETURNED,
)

DEAD = Kind(
    "DeadLetter",
    "A dead letter",
    """
A letter that was given up, with the reason, for people to read and to send back.

Body and properties are the sender's own; `x-dlo-reason` says why it is here, the `x-original-…`
headers say where it belongs.
""".strip(),
    DeadHeaders,
    examples.DEAD,
)

DRILL = Kind(
    "DrillLetter",
    "A letter of the drill",
    """
Any letter, sent to see that retries and dead letters work; its routing key chooses what becomes of it.
""".strip(),
    DrillHeaders,
    examples.DRILL,
)
