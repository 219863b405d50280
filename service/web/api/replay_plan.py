"""The plan of a replay: what the ledger and a look at the queues say about it, in numbers and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from service.core import duration
from service.core.replay import Terms
from service.core.standing import Absent, Sight, Standing, Unseen
from service.ledger.outlook import Outlook
from service.web.api.replay_shapes import ArrivingLine, PlanBody, QueueLine, terms_body

NOBODY_LOOKS = (
    "ledger.intake is off: letters that die again are not seen, and no replay stops itself"
)


def plan_body(
    known: Outlook, sights: Mapping[str, Sight], terms: Terms, *, intake: bool
) -> PlanBody:
    """Everything a person wants to read before pressing the button."""
    return PlanBody(
        total=known.total,
        queues=[_line(known, queue, sights[queue]) for queue in known.queues],
        without_origin=known.homeless,
        held=known.held,
        still_arriving=[ArrivingLine.model_validate(one) for one in known.arriving],
        duration=duration.say(lasting(known.total, terms)),
        terms=terms_body(terms),
        warnings=[*_warnings(known, sights), *(() if intake else (NOBODY_LOOKS,))],
    )


def lasting(total: int, terms: Terms) -> timedelta:
    """The canary's window, the ramp, and the last letter's window; in whole seconds."""
    if not total:
        return timedelta()
    first = min(terms.canary, total)
    windows = (1 if first else 0) + (1 if total > first else 0)
    return timedelta(seconds=round(total / terms.rate)) + windows * terms.watch


def _line(known: Outlook, queue: str, sight: Sight) -> QueueLine:
    letters, busy = known.queues[queue], known.busy.get(queue)
    nothing: dict[str, None] = {"consumers": None, "ready": None}
    seen: dict[str, object]
    match sight:
        case Standing(ready, consumers):
            seen = {"exists": True, "consumers": consumers, "ready": ready, "says": ""}
        case Absent():
            seen = {"exists": False, "says": "", **nothing}
        case Unseen(why):
            seen = {"exists": None, "says": f"unknown: {why}", **nothing}
    return QueueLine.model_validate({"queue": queue, "letters": letters, "busy": busy, **seen})


def _warnings(known: Outlook, sights: Mapping[str, Sight]) -> Iterator[str]:
    for queue in known.queues:
        match sights[queue]:
            case Absent():
                yield f"there is no queue {queue}: its letters will be unroutable; name a target"
            case Standing(_, 0):
                yield f"nobody consumes {queue}: its letters will wait there"
            case _:
                pass
        if by := known.busy.get(queue):
            yield f"replay {by} is sending to {queue}: this one waits until it has ended"
    for one in known.arriving:
        yield f"the cause {one.cause} is still arriving: it may not be mended yet"
    if known.homeless:
        yield f"nobody knows where {known.homeless} letters died: they are left out; name a target"
    if known.held:
        yield f"{known.held} letters are chosen by another replay too: whoever is first has them"
