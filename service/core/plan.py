"""What the edge must do, as data: send all, confirmed and routed; then settle once, last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import assert_never

from service.core import marks as names
from service.core.delivery import Delivery
from service.core.marks import Marks, MarkValue, Seal, Unmarked, shorten, stamp
from service.core.outcome import Failed, Refused
from service.core.replayed import receipt
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict, Why


@dataclass(frozen=True, slots=True)
class Address:
    """Where a letter is sent."""

    exchange: str
    routing_key: str


RECEIPTS = Address("", "dlo.receipts")
"""Where handlers tell that they took a letter which a job had sent back."""


@dataclass(frozen=True, slots=True)
class Send:
    """This letter, to there: body and properties as they came, marks replaced."""

    to: Address
    marks: Mapping[str, MarkValue] = field(default_factory=dict)


class Note(Send):
    """A slip of our own: marks only, nothing of the letter's. It is sent once and best effort, for it
    must never hold up the letter that it tells of."""


class SentBack(Send):
    """A letter of the ledger: that no queue takes it is a result, and no trouble of ours."""


class Settle(Enum):
    """How the delivery itself ends."""

    ACK = "ack"
    REQUEUE = "requeue"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Plan:
    """Pause, send all (confirmed), settle once. `otherwise` stands in when no queue takes a send,
    `later` when one refuses it for now: a full queue of one team must not hold up the others.

    Without them a send that fails is our own topology's fault: the letter is held.
    """

    settle: Settle
    sends: tuple[Send, ...] = ()
    pause: timedelta = timedelta()
    otherwise: Plan | None = None
    later: Plan | None = None


Moved = Retry | Bury | Discard
"""The verdicts that may send a letter on."""


@dataclass(frozen=True, slots=True)
class Publish:
    """A way: a confirmed publish, then the acknowledgement; a flow may stamp marks of its own too."""

    to: Callable[[Delivery, Moved], Address]
    also: Callable[[Delivery, Moved], Mapping[str, MarkValue]] = lambda *_: {}


@dataclass(frozen=True, slots=True)
class Reject:
    """A way: reject, and let the queue's own dead-letter exchange carry it."""


Way = Publish | Reject


@dataclass(frozen=True, slots=True)
class Errand:
    """What a replay does with one letter: whereto, under which mark and id, with fresh attempts or not."""

    queue: str
    mark: str
    letter: str
    is_fresh: bool = False


@dataclass(frozen=True, slots=True)
class Ways:
    """How retries and burials of a flow travel; `defer` where a wait spends no attempt, `discard`
    where what is dropped leaves a copy behind."""

    retry: Way
    bury: Way
    defer: Way | None = None
    discard: Way | None = None


def plan(verdict: Verdict, delivery: Delivery, ways: Ways, seal: Seal) -> Plan:
    """The plan that carries out a verdict; the verdict alone decides what happens."""
    match verdict:
        case Accept() if delivery.is_replay:
            return Plan(Settle.ACK, (_receipt(delivery, seal),))
        case Accept():
            return Plan(Settle.ACK)
        case Discard() if ways.discard is None:
            return Plan(Settle.ACK)
        case Discard():
            assert ways.discard is not None
            return _travel(ways.discard, verdict, delivery, stamp(delivery.marks, seal))
        case Requeue(pause):
            return Plan(Settle.REQUEUE, pause=pause)
        case Retry(number):
            stamped = stamp(delivery.marks.counting(number), seal)
            return _travel(_way(verdict, delivery, ways), verdict, delivery, stamped)
        case Bury():
            return _travel(ways.bury, verdict, delivery, stamp(delivery.marks, seal))
        case never:
            assert_never(never)


def returning(delivery: Delivery, to: Address, ways: Ways, seal: Seal, again: timedelta) -> Plan:
    """Send a letter back to where it failed; if nobody is there any more, bury it; if its queue is
    full, let it wait once more, without spending an attempt."""
    nobody = f"nobody takes it any more at {_place(to)}"
    lost = delivery.ended(Refused(nobody, Why.UNROUTABLE))
    stamped = stamp(delivery.marks, seal)
    burial = _travel(ways.bury, Bury(nobody, Why.UNROUTABLE), lost, stamped)
    wait = Retry(delivery.retries, again)
    later = _travel(_way(wait, delivery, ways), wait, delivery, stamped)
    return Plan(Settle.ACK, (Send(to, stamped),), otherwise=burial, later=later)


def _way(retry: Retry, delivery: Delivery, ways: Ways) -> Way:
    """A wait that spends no attempt may have a way of its own."""
    return ways.defer if ways.defer and retry.number == delivery.retries else ways.retry


def replaying(
    known: Marks | Unmarked, own: Mapping[str, object], errand: Errand, seal: Seal
) -> SentBack:
    """Send a letter of the ledger to a queue. Marks of ours go on, with the count or without it; a
    stranger's letter keeps all of its own headers and gets its id and the job's mark beside them."""
    to, mark = Address("", errand.queue), errand.mark
    # KDLQ's counters are not ours alone, so they are set back and not taken away.
    anew = {n: 0 for n in (names.REDELIVERED, names.KILLS) if errand.is_fresh and n in own}
    match known:
        case Marks(origin=origin):
            again = replace(known, origin=replace(origin, queue=errand.queue), replay=mark)
            fresh = replace(again, retries=0, deaths={})
            return SentBack(to, {**stamp(fresh if errand.is_fresh else again, seal), **anew})
        case Unmarked():
            theirs = {name: value for name, value in own.items() if name in names.SHARED}
            kept = {n: v for n, v in theirs.items() if isinstance(v, str) or type(v) is int}
            marks = {**kept, **anew, names.LETTER: errand.letter, names.REPLAY: mark}
            return SentBack(to, marks)
        case never:
            assert_never(never)


def _receipt(delivery: Delivery, seal: Seal) -> Note:
    marks: dict[str, MarkValue] = {names.LETTER: delivery.marks.letter}
    return Note(RECEIPTS, {**marks, **receipt(delivery.marks.replay, seal)})


def _travel(way: Way, verdict: Moved, delivery: Delivery, stamped: Mapping[str, MarkValue]) -> Plan:
    match way:
        case Publish(to, also):
            marks = {
                **stamped,
                **_error(delivery),
                **_says(verdict, delivery),
                **also(delivery, verdict),
            }
            return Plan(Settle.ACK, (Send(to(delivery, verdict), marks),))
        case Reject():
            return Plan(Settle.REJECT)
        case never:
            assert_never(never)


def _says(verdict: Moved, delivery: Delivery) -> dict[str, MarkValue]:
    match verdict:
        case Retry(after=after):
            return {names.DUE: round((delivery.at + after).timestamp() * 1000)}
        case Bury(reason) | Discard(reason):
            return {names.REASON: shorten(reason)}
        case never:
            assert_never(never)


def _error(delivery: Delivery) -> dict[str, MarkValue]:
    match delivery.outcome:
        case Failed(error, kind) | Refused(error, _, kind):
            return {names.ERROR: shorten(error), names.ERROR_TYPE: shorten(kind, 255)}
        case _:
            return {}


def _place(to: Address) -> str:
    if not to.exchange:
        return f"queue {to.routing_key}"
    return f"exchange {to.exchange} with key {to.routing_key}"
