"""What a death does to a letter: the headers, the next keys and the count it carries on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from faststream.rabbit import RabbitQueue

from service.simulation.deaths import Reason, first_of, with_death
from service.simulation.flavour import Flavour
from service.simulation.letter import Headers, Letter, keys_in
from service.topology.arguments import dead_letter_key


def dead(
    letter: Letter,
    queue: RabbitQueue,
    exchange: str,
    reason: Reason,
    at: datetime,
    flavour: Flavour,
) -> Letter:
    """The letter as its queue's dead-letter exchange receives it."""
    expiration = letter.properties.get("expiration")
    death = first_of(queue.name, reason, at, letter.exchange, _told_keys(letter, flavour))
    if expiration is not None:
        death = {**death, "original-expiration": expiration}
    deaths = with_death(letter.deaths, death, turns_around=flavour.turns_deaths_around)
    headers = {**letter.headers, **_summaries(letter, queue.name, reason, flavour)}
    addressed = _addressed(letter, dead_letter_key(queue), flavour)
    return replace(
        addressed,
        exchange=exchange,
        headers=_kept(headers, addressed) | {"x-death": list(deaths)},
        # An expiration that has done its work would kill the letter again in the next queue.
        properties={n: v for n, v in letter.properties.items() if n != "expiration"},
        deaths=deaths,
    )


def _summaries(letter: Letter, queue: str, reason: Reason, flavour: Flavour) -> Headers:
    """`x-first-death-*` once, `x-last-death-*` (RabbitMQ 4) every time."""
    # RabbitMQ 3 looks at the header, whoever wrote it and whatever is in it.
    known = "x-death" in letter.headers if flavour.believes_client_deaths else bool(letter.deaths)
    summary = {"reason": reason.value, "queue": queue, "exchange": letter.exchange}
    first = {} if known else {f"x-first-death-{name}": value for name, value in summary.items()}
    last = {f"x-last-death-{name}": value for name, value in summary.items()}
    return first | (last if flavour.writes_last_death else {})


def _told_keys(letter: Letter, flavour: Flavour) -> tuple[str, ...]:
    """The keys a death tells: RabbitMQ 4 leaves out any that ever was a blind one."""
    if flavour.believes_client_deaths:
        return (letter.routing_key, *keys_in(letter.headers, "CC"))
    told = list(letter.keys)
    for key in letter.blind:
        if key in told:
            told.remove(key)
    return tuple(told)


def _addressed(letter: Letter, key: str | None, flavour: Flavour) -> Letter:
    if key is None:
        return letter
    kept = {n: v for n, v in letter.headers.items() if flavour.keeps_cc or n != "CC"}
    return replace(letter, keys=(key,), headers=kept)


def _kept(headers: dict[str, object], addressed: Letter) -> dict[str, object]:
    return {n: v for n, v in headers.items() if n != "CC" or "CC" in addressed.headers}
