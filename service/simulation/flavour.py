"""Where versions of RabbitMQ differ, as far as a letter can tell; each value was seen on a node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Count(StrEnum):
    """How the number of deliveries is kept."""

    PER_QUEUE = (
        "per queue"  # a quorum queue counts what comes back to it, and forgets on the way out
    )
    MARKED = "marked"  # … and a letter rejected out of a quorum queue arrives with a count to show
    CARRIED = "carried"  # basic.reject counts in every queue, and the count travels with the letter


@dataclass(frozen=True, slots=True)
class Flavour:
    """One kind of RabbitMQ."""

    name: str
    believes_client_deaths: bool  # an x-death that a client publishes is continued
    turns_deaths_around: bool  # each death reverses the order of the older ones
    writes_last_death: bool
    keeps_cc: bool  # the CC header outlives a dead-letter routing key
    delivery_limit: int | None  # of a quorum queue that names none
    negative_limit_is_none: bool
    unlimited_goes_last: bool  # a quorum queue without a limit puts what comes back to its end
    count: Count
    shows_zero_on_get: bool  # basic.get shows `x-delivery-count: 0`, a consumer sees no header


RABBIT_3_10 = Flavour(
    name="3.10",
    believes_client_deaths=True,
    turns_deaths_around=True,
    writes_last_death=False,
    keeps_cc=False,
    delivery_limit=None,
    negative_limit_is_none=False,
    unlimited_goes_last=True,
    count=Count.PER_QUEUE,
    shows_zero_on_get=True,
)
RABBIT_4_0 = Flavour(
    name="4.0",
    believes_client_deaths=False,
    turns_deaths_around=False,
    writes_last_death=True,
    keeps_cc=True,
    delivery_limit=20,
    negative_limit_is_none=True,
    unlimited_goes_last=True,
    count=Count.MARKED,
    shows_zero_on_get=False,
)
RABBIT_4_3 = Flavour(
    name="4.3",
    believes_client_deaths=False,
    turns_deaths_around=False,
    writes_last_death=True,
    keeps_cc=True,
    delivery_limit=20,
    negative_limit_is_none=True,
    unlimited_goes_last=False,
    count=Count.CARRIED,
    shows_zero_on_get=False,
)
FLAVOURS = (RABBIT_3_10, RABBIT_4_0, RABBIT_4_3)


def flavour_of(version: str) -> Flavour:
    """The flavour nearest to a server's own version, like `"3.10.8"`."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if major < 4:
        return RABBIT_3_10
    return RABBIT_4_3 if (major, minor) >= (4, 3) else RABBIT_4_0
