"""Rows of `dlq_event_config` → routes; what a row says wrongly is a complaint, never an error."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from service.core import duration
from service.core.route import ReturnTo, Route, RouteBook


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands in the table; SQLite lets any type into any column."""

    id: object
    name: object
    max_retries: object
    delays: object
    return_to: object


@dataclass(frozen=True, slots=True)
class Reading:
    """The routes of the table, and a sentence for each thing in it that does not count."""

    book: RouteBook
    complaints: tuple[str, ...]


def read(rows: Iterable[Row], tiers: tuple[timedelta, ...]) -> Reading:
    """Bad rows never touch the good ones."""
    complaints: list[str] = []
    routes = [route for row in rows if (route := _route(row, tiers, complaints)) is not None]
    return Reading(RouteBook.of(routes), tuple(complaints))


def _route(row: Row, tiers: tuple[timedelta, ...], complaints: list[str]) -> Route | None:
    where = f"dlq_event_config row {row.id}"
    if not isinstance(row.name, str):
        complaints.append(f"{where} has no name: it is skipped")
        return None
    where = f"{where} ({row.name})"
    return Route(
        row.name,
        _max_retries(row.max_retries, where, complaints),
        _delays(row.delays, tiers, where, complaints),
        _return_to(row.return_to, where, complaints),
    )


def _max_retries(value: object, where: str, complaints: list[str]) -> int | None:
    if value is None or (isinstance(value, int) and value >= -1):
        return value
    complaints.append(f"{where}: max_retries {value!r} is no number from -1: the default counts")
    return None


def _delays(
    value: object, tiers: tuple[timedelta, ...], where: str, complaints: list[str]
) -> tuple[timedelta, ...]:
    """`"10s,20s"`; each must be a tier, for a wait is a queue that stands or does not."""
    try:
        delays = tuple(duration.parse(part) for part in str(value or "").split(",") if part.strip())
    except ValueError as error:
        complaints.append(f"{where}: delays: {error}: the tiers count")
        return ()
    if strange := [duration.say(delay) for delay in delays if delay not in tiers]:
        known = ", ".join(map(duration.say, tiers))
        complaints.append(
            f"{where}: delays {', '.join(strange)} not among the tiers {known}, which count"
        )
        return ()
    return delays


def _return_to(value: object, where: str, complaints: list[str]) -> ReturnTo:
    try:
        return ReturnTo.QUEUE if value is None else ReturnTo(str(value))
    except ValueError:
        known = " or ".join(ReturnTo)
        complaints.append(f"{where}: return_to {value!r} is not {known}: queue counts")
        return ReturnTo.QUEUE
