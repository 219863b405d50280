"""The inquest: a dead letter as its queue gave it out → what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from uuid import uuid4

from service.core import marks
from service.core.cleaning import clean, words
from service.core.fingerprint import Failure, cause_of
from service.core.history import DEATH_REASONS, LONGEST_NAME, Death, newest_death
from service.core.identity import body_digest, burial_digest, letter_identity
from service.core.marks import Marks, Origin, Seal
from service.core.replayed import replayed_in
from service.edge import dialects
from service.edge.dialects import Testimony
from service.edge.fields import decode_only, decode_table
from service.edge.properties import open_properties
from service.edge.wire import Delivered
from service.ledger.burial import Burial, Sent
from service.office.searchable import searchable

LONGEST_TABLE = 64 * 1024
"""Larger header tables are not decoded as a whole: 60 000 booleans hold the loop for most of a second."""
NAMES = 1024
"""Names of queues and keys that are remembered: letters share them."""
ADOPTED = "adopted"
Headers = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Source:
    """A queue whose dead letters the ledger takes in."""

    queue: str
    flow: str = ADOPTED
    discarded: bool = False
    """Its letters were dropped on purpose: they are only recorded."""

    @property
    def is_adopted(self) -> bool:
        """Somebody else's: what its letters say of themselves is all there is to know."""
        return self.flow == ADOPTED


@dataclass(frozen=True, slots=True)
class Inquest:
    """Reads what can be read, believes what is signed, and never fails for what a stranger wrote."""

    seal: Seal

    def hold(self, taken: Delivered, source: Source, now: datetime) -> Burial:
        """One letter's burial, with everything that its headers tell."""
        said = open_properties(taken.properties)
        headers, body = _headers(said.table), body_digest(taken.body)
        letter, known = self._letter(headers, _text(said.values.get("message_id")))
        death, told = newest_death(headers), dialects.testimony(headers, source.queue)
        origin = _origin(source, known, death, told, taken)
        failure = _failure(headers, told, death, origin.queue)
        return Burial(
            id=letter_identity(letter, origin.queue, body) if letter else uuid4().hex,
            letter=clean(letter, LONGEST_NAME),
            error=failure.error or told.error,
            reason=_reason(headers, told, death, source),
            facts=searchable(headers, said.values),
            digest=burial_digest(said.plain, said.table, body),
            body=taken.body,
            headers=said.table,
            properties=said.plain,
            first_failure=_first_failure(known, told, death, now),
            flow=source.flow,
            queue=_bounded(source.queue),
            origin_queue=_name(origin.queue),
            exchange=_name(origin.exchange),
            routing_key=_name(origin.routing_key),
            error_type=failure.error_type,
            place=failure.place,
            content_type=words(said.values.get("content_type"), LONGEST_NAME),
            retries=known.retries if known else told.retries,
            cause=cause_of(failure),
            discarded=source.discarded,
            redelivered=taken.redelivered,
            sent=self._sent(headers, origin.queue, taken.body),
        )

    def bare(self, taken: Delivered, source: Source, now: datetime, why: str) -> Burial:
        """A letter that cannot be filed with all it tells: its bytes, and why there is no more."""
        said = open_properties(taken.properties)
        reason = clean(f"it could not be read: {why}")
        return Burial(
            id=uuid4().hex,
            letter="",
            flow=source.flow,
            queue=_bounded(source.queue),
            origin_queue="",
            exchange="",
            routing_key="",
            cause=cause_of(Failure(error=reason)),
            error_type="",
            error=reason,
            place="",
            reason=reason,
            retries=0,
            digest=burial_digest(said.plain, said.table, body_digest(taken.body)),
            body=taken.body,
            headers=said.table,
            properties=said.plain,
            facts="{}",
            content_type="",
            first_failure=now,
            redelivered=taken.redelivered,
            discarded=source.discarded,
        )

    def _sent(self, headers: Headers, queue: str, body: bytes) -> Sent | None:
        """The replay that sent this very letter to the queue it died in."""
        replayed = replayed_in(marks.replay_in(headers), queue, body, self.seal)
        if replayed is None:
            return None
        return Sent(replayed.job, replayed.position, replayed.letter)

    def _letter(self, headers: Headers, message_id: str) -> tuple[str, Marks | None]:
        """The letter's id, and its marks where they may be believed and are this letter's own: a
        consumer may have copied them to another one."""
        known = marks.read(headers, self.seal)
        if isinstance(known, Marks) and message_id in ("", known.letter):
            return known.letter, known
        return message_id, None


def _headers(table: bytes) -> Headers:
    if len(table) <= LONGEST_TABLE:
        return decode_table(table)[0]
    return decode_only(
        table, lambda name: name in dialects.SPOKEN or marks.is_dropped(name), len(table)
    )


@lru_cache(maxsize=NAMES)
def _bounded(text: str) -> str:
    return clean(text, LONGEST_NAME)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=NAMES)
def _name(text: str) -> str:
    """A name that can be sent to; "" for one that no broker has: they hold 255 bytes."""
    kept = clean(text)
    return kept if len(kept.encode()) <= LONGEST_NAME else ""


def _origin(
    source: Source, known: Marks | None, death: Death | None, told: Testimony, taken: Delivered
) -> Origin:
    """Where the letter died, which is where a replay sends it.

    In a queue of ours only our own signature counts, then the broker's word. Who may write to a queue
    that was adopted may also say where its letters belong: the operator said so.
    """
    if not source.is_adopted and known is not None and known.flow == source.flow:
        return known.origin
    if source.is_adopted and told.queue:
        return Origin(told.queue, told.exchange, told.routing_key or told.queue)
    if source.is_adopted and told.routing_key:
        return Origin(_died_under(death, told), told.exchange, told.routing_key)
    if death is not None:
        return Origin(death.queue, death.exchange, death.routing_key)
    if known is not None:
        return known.origin
    return Origin("", taken.exchange, taken.routing_key)


def _died_under(death: Death | None, told: Testimony) -> str:
    """The queue, where the broker saw the letter die under the address that its headers name."""
    here = death is not None and (death.exchange, death.routing_key)
    return death.queue if death is not None and here == (told.exchange, told.routing_key) else ""


def _failure(headers: Headers, told: Testimony, death: Death | None, queue: str) -> Failure:
    given = words(headers.get(dialects.FINGERPRINT), LONGEST_NAME)
    if told.error_type in DEATH_REASONS:  # our desk saw only how it died
        return Failure(given, reason=told.error_type, queue=_bounded(queue))
    status = words(headers.get(marks.FINAL_STATUS), 10)
    kind = told.error_type or (f"HTTP {status}" if status else "")
    reason = death.reason if death is not None else ""
    return Failure(given, kind, told.error, told.place, reason, _bounded(queue))


def _reason(headers: Headers, told: Testimony, death: Death | None, source: Source) -> str:
    if said := words(headers.get(marks.REASON)):
        return said
    if told.dialect:
        return f"{told.dialect} gave it up"
    if death is not None:
        return clean(f"{death.reason} in {death.queue}")
    return clean(f"found in {source.queue}; nothing on it says why")


def _first_failure(
    known: Marks | None, told: Testimony, death: Death | None, now: datetime
) -> datetime:
    said = known.first_failure if known else told.failed_at or (death.since if death else None)
    if said is None or not 1990 <= said.year < 9999:
        return now
    return min(said if said.tzinfo is UTC else said.astimezone(UTC), now)
