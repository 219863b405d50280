"""The kinds of letters on KDLQ's channels: their headers, and examples of each."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from service.core import marks
from service.edge.header_schema import Count, Number, Text, always, sometimes
from service.edge.pages import Kind
from service.flows.kdlq import examples
from service.flows.kdlq.policy import NAME


class KdlqHeaders(BaseModel):
    """The sender's own headers travel along untouched; these are there after the first hop."""

    model_config = ConfigDict(extra="allow", frozen=True)

    redelivered: Number = sometimes(marks.REDELIVERED, "How often it was redelivered.")
    kills: Number = sometimes(marks.KILLS, "How often it was sent to the DLQ.")
    marker: Text = sometimes(marks.MARKER, "The handler that sent it on last.")
    offset: Number = sometimes(marks.ORIG_OFFSET, "On request: the first record's offset.")
    partition: Number = sometimes(marks.ORIG_PARTITION, "On request: its partition.")
    timestamp: Number = sometimes(marks.ORIG_TS, "On request: its timestamp, in milliseconds.")


class KdlqGivenUpHeaders(KdlqHeaders):
    """Besides: what it was and why it is here; each replaces what was written before."""

    reason: str = always(marks.REASON, "Why it is here, as a person reads it.")
    error: str = always(marks.ERROR, "How the last attempt ended; 1 kB at most.")
    error_type: str = always(marks.ERROR_TYPE, "The kind of that end.")
    retries: Count = always(marks.RETRY_COUNT, "The same as `KDLQ_Redelivered`.")
    queue: str = always(
        marks.ORIGINAL_QUEUE, "The queue that it came from at first; of a topic `kafka:topic`."
    )
    exchange: str = always(marks.ORIGINAL_EXCHANGE, "The exchange it was first published to.")
    key: str = always(marks.ORIGINAL_ROUTING_KEY, "The routing key it was first published with.")
    letter: str = always(marks.LETTER, "Its id: its `message_id`, or one that was made for it.")
    flow: str = always(marks.FLOW, f"The flow that takes care of it: here `{NAME}`.")
    first_failure: datetime = always(marks.FIRST_FAILURE, "When it failed first, in UTC.")
    counts: dict[str, Count] = always(marks.DEATHS, "Empty here: no queue dead-letters.")
    signature: Text = sometimes(marks.SIGNATURE, "That all this was written by the service.")
    dropped: Number = sometimes(
        marks.DROPPED,
        "Only where the sender's headers left no room for these: how many bytes were left out.",
    )


MESSAGE = Kind(
    "KdlqMessage",
    "A message for a handler",
    "A message, for the first time or redelivered. The body is whatever its sender wrote.",
    KdlqHeaders,
    examples.MESSAGES,
)
DEAD = Kind(
    "KdlqDeadMessage",
    "A message in the DLQ",
    """
A message whose handler failed, or whose redeliveries are spent. Body and properties are as they were. Taken
from here and handled again it keeps its counters: without `KDLQ_Kills` and `KDLQ_Redelivered` it begins anew.
""".strip(),
    KdlqGivenUpHeaders,
    examples.DEAD,
)
SKIPPED = Kind(
    "KdlqSkippedMessage",
    "A message that was skipped",
    "A copy of a message whose kills are spent: it is in no DLQ, and this is its trace.",
    KdlqGivenUpHeaders,
    examples.SKIPPED_ONES,
)
