"""The facts of one attempt: which letter, where it failed, how often before, how it ended now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from service.core.history import Death, newest_death
from service.core.marks import ORIGINAL_QUEUE, Marks, MarkValue, Origin, Seal, read, replay_in
from service.core.outcome import Done, Failed, Outcome, Refused
from service.core.replayed import replayed_in
from service.core.verdict import Why

NOWHERE = Origin("", "", "")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to hand one letter to one handler, and what its marks say of its past."""

    marks: Marks
    outcome: Outcome
    at: datetime
    is_replay: bool = False
    """A job of ours sent this very letter to this queue, and wants to hear that it was taken."""
    kills: int = 0
    """How often it was sent to the dead letters before, where the flow counts that."""
    carries: Mapping[str, MarkValue] = field(default_factory=dict)
    """What its flow found out about it, to be stamped on every copy."""

    @property
    def retries(self) -> int:
        """How often this letter has been retried before this delivery."""
        return self.marks.retries

    @property
    def origin(self) -> Origin:
        """Where the letter failed."""
        return self.marks.origin

    def ended(self, outcome: Outcome) -> Delivery:
        """The same attempt, with another end."""
        return replace(self, outcome=outcome)


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a lane read of a message, before anything is believed."""

    message_id: str | None
    headers: Mapping[str, object]
    fresh_id: str
    at: datetime
    exchange: str = ""
    routing_key: str = ""
    redelivered: bool = False
    body: bytes = b""
    place: Mapping[str, int] = field(default_factory=dict)
    """Where and when the broker had it, as far as the lane knows: offset, partition, timestamp (ms)."""


def in_hand(envelope: Envelope, flow: str, seal: Seal, queue: str, more: int = 0) -> Delivery:
    """A letter that a handler of ours takes from this queue, not ended yet.

    Its retries are those of our own mark, and what the broker counted since (`more`).
    """
    known = read(envelope.headers, seal)
    here = Origin(queue, envelope.exchange, envelope.routing_key)
    if isinstance(known, Marks) and _belongs_to(known, envelope, flow, queue):
        marks = replace(known, retries=known.retries + more)
    else:
        marks = Marks(envelope.message_id or envelope.fresh_id, flow, here, more, envelope.at)
        marks = replace(marks, replay=replay_in(envelope.headers))
    is_replay = was_sent_back(marks, envelope, queue, seal)
    return Delivery(marks, Done(), envelope.at, is_replay=is_replay)


def was_sent_back(marks: Marks, envelope: Envelope, queue: str, seal: Seal) -> bool:
    """Whether a job of ours sent this very letter to this queue."""
    return bool(marks.replay) and bool(replayed_in(marks.replay, queue, envelope.body, seal))


def dead_lettered(
    envelope: Envelope, flow: str, seal: Seal, machinery: frozenset[str] = frozenset()
) -> Delivery:
    """A letter that some queue dead-lettered to us; its newest death is that queue's, by the broker.

    Marks count only where they speak of the same flow, letter and queue; otherwise this is a first
    failure, for instance of a letter that a consumer copied to another queue, headers and all.
    """
    death = newest_death(envelope.headers)
    if death is None:
        return without_origin(envelope, flow, "it was not dead-lettered here by a queue")
    if death.queue in machinery:
        return without_origin(
            envelope, flow, f"{death.queue} is a queue of ours, nothing fails there"
        )
    known = read(envelope.headers, seal)
    if isinstance(known, Marks) and _belongs_to(known, envelope, flow, death.queue):
        deaths = {**known.deaths, death.reason: known.deaths.get(death.reason, 0) + 1}
        marks = replace(known, deaths=deaths)
    else:
        marks = _first_failure(envelope, flow, death)
    return Delivery(marks, Failed(_says(death), kind=death.reason), envelope.at)


def come_back(envelope: Envelope, flow: str, seal: Seal) -> Delivery:
    """A letter whose wait is over: only our own marks know where it belongs."""
    known = read(envelope.headers, seal)
    if not isinstance(known, Marks):
        return without_origin(envelope, flow, known.reason + _claim(envelope))
    if known.flow != flow or envelope.message_id not in (None, known.letter):
        return without_origin(envelope, flow, "its marks belong to another letter")
    return Delivery(known, Done(), envelope.at)


def without_origin(envelope: Envelope, flow: str, reason: str) -> Delivery:
    """Nobody vouches for where this letter belongs: it goes to people."""
    letter = envelope.message_id or envelope.fresh_id
    marks = Marks(letter, flow, NOWHERE, 0, envelope.at, replay=replay_in(envelope.headers))
    return Delivery(marks, Refused(f"no origin: {reason}", Why.NO_ORIGIN), envelope.at)


def _claim(envelope: Envelope) -> str:
    """What nobody vouches for, for a person to judge."""
    queue = envelope.headers.get(ORIGINAL_QUEUE)
    return f"; they name the queue {queue[:255]}" if isinstance(queue, str) and queue else ""


def _belongs_to(marks: Marks, envelope: Envelope, flow: str, queue: str) -> bool:
    same_letter = envelope.message_id in (None, marks.letter)
    return same_letter and marks.flow == flow and marks.origin.queue == queue


def _first_failure(envelope: Envelope, flow: str, death: Death) -> Marks:
    origin = Origin(death.queue, death.exchange, death.routing_key)
    letter = envelope.message_id or envelope.fresh_id
    replay = replay_in(envelope.headers)
    return Marks(letter, flow, origin, 0, envelope.at, {death.reason: 1}, replay)


def _says(death: Death) -> str:
    match death.reason:
        case "rejected":
            return f"rejected by a consumer of {death.queue}"
        case "expired":
            return f"expired in {death.queue}"
        case "maxlen":
            return f"pushed out of {death.queue}, which was full"
        case "delivery_limit":
            return f"delivered too often from {death.queue}"
        case _:
            return f"dead-lettered from {death.queue}"
