"""Whether people are told of a cause now, together with others, or later: once each, never in a flood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.core.states import CauseState


@dataclass(frozen=True, slots=True)
class Alarm:
    """A cause that people have not been told of: ids and counts, nothing out of a letter."""

    cause: str
    state: CauseState
    letters: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Patience:
    """After so many messages within the window, the others are gathered into one."""

    digest_after: int = 5
    window: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class TellEach:
    """A message for each."""

    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True)
class TellTogether:
    """One message for all of them."""

    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing for now."""


Telling = TellEach | TellTogether | Hold


def telling(
    due: Sequence[Alarm], told: Sequence[datetime], now: datetime, patience: Patience
) -> Telling:
    """What to say of the causes that are due, when messages went out at these moments before.

    A digest counts as one message, so a flood of causes is one message a window.
    """
    recent = sum(moment > now - patience.window for moment in told)
    room = patience.digest_after - recent
    if not due or room <= 0:
        return Hold()
    return TellEach(tuple(due)) if len(due) <= room else TellTogether(tuple(due))
