"""Delivery counts: what is counted, what a consumer is shown, and when a letter has had enough."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from faststream.rabbit import RabbitQueue

from service.simulation.flavour import Count, Flavour
from service.simulation.letter import Headers
from service.simulation.lines import Place
from service.topology.arguments import is_quorum, number


class Method(StrEnum):
    """How a delivery was given back: RabbitMQ 4.3 counts the two differently."""

    REJECT = "basic.reject"
    NACK = "basic.nack"


def count_return(place: Place, method: Method, flavour: Flavour) -> None:
    """A delivery comes back to its queue."""
    if flavour.count is not Count.CARRIED:
        place.count += 1
    elif method is Method.REJECT:
        place.letter = replace(place.letter, rejections=place.letter.rejections + 1)


def count_discard(place: Place, queue: RabbitQueue, method: Method, flavour: Flavour) -> None:
    """A delivery is refused for good; what is counted here shows in the queue it goes to."""
    match flavour.count:
        case Count.PER_QUEUE:
            return
        case Count.MARKED:
            counts = is_quorum(queue)
        case Count.CARRIED:
            counts = method is Method.REJECT
    if counts:
        place.letter = replace(place.letter, rejections=place.letter.rejections + 1)


def delivery_limit(queue: RabbitQueue, flavour: Flavour) -> int | None:
    """How often a letter may come back to a queue; None: without end."""
    if not is_quorum(queue):
        return None
    limit = number(queue, "x-delivery-limit")
    if limit is None:
        return flavour.delivery_limit
    return None if limit < 0 and flavour.negative_limit_is_none else limit


def is_over_limit(place: Place, limit: int | None, flavour: Flavour) -> bool:
    """Whether a queue gives the letter up instead of taking it back."""
    return limit is not None and _counted(place, flavour) > limit


def is_redelivered(place: Place, queue: RabbitQueue, flavour: Flavour, *, waited: bool) -> bool:
    """The `redelivered` flag."""
    match flavour.count:
        case Count.PER_QUEUE:
            return place.returns > 0
        case Count.MARKED:
            return place.returns > 0 or (is_quorum(queue) and place.letter.rejections > 0)
        case Count.CARRIED:
            # A classic queue that can pass a letter straight on to a consumer never looks at its count.
            looks = waited or is_quorum(queue)
            return place.returns > 0 or (looks and place.letter.rejections > 0)


def shown(place: Place, queue: RabbitQueue, flavour: Flavour, *, polled: bool) -> Headers:
    """The count headers a quorum queue adds; where it adds none, a client's own stay visible."""
    if not is_quorum(queue):
        return {}
    count = _counted(place, flavour) or place.letter.rejections
    headers: dict[str, object] = {}
    if count or (polled and flavour.shows_zero_on_get):
        headers["x-delivery-count"] = count
    if flavour.count is Count.CARRIED and (place.returns or count):
        headers["x-acquired-count"] = place.returns or count
    return headers


def _counted(place: Place, flavour: Flavour) -> int:
    return place.letter.rejections if flavour.count is Count.CARRIED else place.count
