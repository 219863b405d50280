"""The kinds of letters on the event bus's channels: their headers, and examples of each."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from service.core import marks
from service.edge.header_schema import Count, Number, Text, always, sometimes
from service.edge.pages import Kind
from service.flows.event_bus import examples
from service.flows.event_bus.policy import NAME


class BusHeaders(BaseModel):
    """The producer's own headers travel along untouched."""

    model_config = ConfigDict(extra="allow", frozen=True)


class BusDeath(BusHeaders):
    """How an event left a queue, as RabbitMQ writes it."""

    queue: str = Field(description="The queue it left.")
    reason: str = Field(description="Why: `rejected` by us, or `expired` when its wait was over.")
    exchange: str = Field(description="The exchange it had been published to.")
    keys: list[str] = always("routing-keys", "The routing keys it had been published with.")
    count: int = Field(ge=1, description="How often it left this queue for this reason.")


class BusEventHeaders(BusHeaders):
    """The producer's own headers; RabbitMQ adds its history where the event has been retried."""

    deaths: list[BusDeath] | SkipJsonSchema[None] = sometimes(
        "x-death",
        "The count of the entry `rejected` of the service's queue is the number of retries so far.",
    )


class BusMarkedHeaders(BusHeaders):
    """The producer's own headers, plus these; each replaces what was written before."""

    retries: Count = always(marks.RETRY_COUNT, "How many retries were made so far.")
    exchange: str = always(marks.ORIGINAL_EXCHANGE, "The exchange it was first published to.")
    key: str = always(marks.ORIGINAL_ROUTING_KEY, "The routing key it was first published with.")
    queue: str = always(marks.ORIGINAL_QUEUE, "The service's queue, from which it was taken.")
    letter: str = always(marks.LETTER, "Its id: its `message_id`, or one that was made for it.")
    flow: str = always(marks.FLOW, f"The flow that takes care of it: here `{NAME}`.")
    first_failure: datetime = always(
        marks.FIRST_FAILURE, "When it failed first, or was first put off, in UTC."
    )
    counts: dict[str, Count] = always(
        marks.DEATHS, "How often it was rejected so far; this takes the place of `x-death`."
    )
    dropped: Number = sometimes(
        marks.DROPPED,
        "Only where the producer's headers left no room for these: how many bytes were left out.",
    )
    signature: Text = sometimes(
        marks.SIGNATURE,
        "HMAC-SHA256 over id, flow, origin, count and first failure, in hex; there where the service"
        " has a key.",
    )


class BusWaitingHeaders(BusMarkedHeaders):
    """As the event will come back, plus until when it waits."""

    due: int = always(marks.DUE, "When the wait is over, in milliseconds since 1970.")


class BusDeadHeaders(BusMarkedHeaders):
    """The event's whole story, and why it was given up."""

    status: Number = sometimes(
        marks.FINAL_STATUS, "The HTTP status of the last attempt, where there was an answer."
    )
    final_error: Text = sometimes(
        marks.FINAL_ERROR, "How the last attempt ended, in words; 1 kB at most."
    )
    final_retries: Count = always(
        marks.FINAL_RETRIES, "How many retries were made before it was given up."
    )
    error: Text = sometimes(marks.ERROR, "The same as `x-final-error`, as every flow writes it.")
    error_type: Text = sometimes(
        marks.ERROR_TYPE, "The kind of that end: a status with its name, or an exception's."
    )
    reason: str = always(marks.REASON, "Why it was given up, as a person reads it; 1 kB at most.")


EVENT = Kind(
    "BusEvent",
    "An event for a service",
    """
An event as a producer published it, one copy for each service of the prefix.

Body, properties and headers are the producer's own. An event that is retried has RabbitMQ's `x-death`
as well, and its routing key is the name of the queue: the service is told the original one.
""".strip(),
    BusEventHeaders,
    examples.EVENTS,
)

WAITING = Kind(
    "BusWaitingEvent",
    "An event that came too early",
    """
An event for which it was too early while others slept already: it waits here and spends no attempt.

Body and properties are the producer's own, less `expiration` and `user_id`. The number of retries, which
RabbitMQ would forget, travels in `x-retry-count`. Events that failed wait here too, as they were published.
""".strip(),
    BusWaitingHeaders,
    examples.WAITING,
)

DEAD = Kind(
    "BusDeadEvent",
    "A dead event",
    """
An event that was given up, with its last status and error, for people to read and to send back.

Body and properties are the producer's own, less `expiration` and `user_id`. RabbitMQ's `x-death` is left
out, because RabbitMQ 3 and 4 read it differently on a letter that is published again: the number of
retries is in `x-final-retry-count`, and in `x-retry-count`, from which it goes on when it is moved back.
""".strip(),
    BusDeadHeaders,
    examples.DEAD,
)
