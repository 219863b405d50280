"""`x-death`: how RabbitMQ writes down that a letter died, and finds loops nobody rejected in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

# A death is the table RabbitMQ writes: count, reason, queue, time, exchange, routing-keys.
Death = Mapping[str, object]
Deaths = tuple[Death, ...]


class Reason(StrEnum):
    """Why a letter left a queue without being acknowledged."""

    REJECTED = "rejected"
    EXPIRED = "expired"
    DELIVERY_LIMIT = "delivery_limit"


def told(headers: Mapping[str, object]) -> Deaths:
    """The deaths a header table tells of; anything that is not a list of tables tells of none."""
    value = headers.get("x-death")
    return (
        tuple(death for death in value if isinstance(death, dict))
        if isinstance(value, list)
        else ()
    )


def first_of(
    queue: str, reason: Reason, at: datetime, exchange: str, keys: tuple[str, ...]
) -> Death:
    """The table of a first death in this queue for this reason; RabbitMQ writes whole seconds."""
    return {
        "count": 1,
        "reason": reason.value,
        "queue": queue,
        "time": at.replace(microsecond=0),
        "exchange": exchange,
        "routing-keys": list(keys),
    }


def with_death(deaths: Deaths, new: Death, *, turns_around: bool) -> Deaths:
    """One more death in front; a second one in the same queue for the same reason only counts up.

    RabbitMQ 3 turns the older ones around each time: only the first entry is surely the newest.
    """
    known = _once(deaths)[::-1] if turns_around else deaths
    others = tuple(death for death in known if not _same(death, new))
    again = next((death for death in known if _same(death, new)), None)
    return (new if again is None else _counted(again), *others)


def is_cycle(queue: str, deaths: Deaths) -> bool:
    """Whether coming back to this queue would close a loop in which nobody rejected the letter.

    RabbitMQ drops such a letter. It looks at the deaths since the newest one in that queue.
    """
    loop: list[Death] = []
    for death in deaths:
        loop.append(death)
        if death.get("queue") == queue:
            return all(passed.get("reason") != Reason.REJECTED for passed in loop)
    return False


def _same(one: Death, other: Death) -> bool:
    return one.get("queue") == other.get("queue") and one.get("reason") == other.get("reason")


def _once(deaths: Deaths) -> Deaths:
    """What a client made up may tell of one death twice, or without a count."""
    kept: dict[tuple[object, object], Death] = {}
    for death in deaths:
        kept.setdefault((death.get("queue"), death.get("reason")), {"count": 1, **death})
    return tuple(kept.values())


def _counted(death: Death) -> Death:
    count = death.get("count")
    return {**death, "count": count + 1 if isinstance(count, int) else 1}
