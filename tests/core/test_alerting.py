"""Once each, never in a flood: what people are told, as a table."""

from datetime import UTC, datetime, timedelta

import pytest

from service.core.alerting import Alarm, Hold, Patience, TellEach, Telling, TellTogether, telling
from service.core.states import CauseState

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
PATIENCE = Patience(digest_after=5, window=timedelta(minutes=10))


def alarms(count: int) -> tuple[Alarm, ...]:
    return tuple(Alarm(f"{n:016x}", CauseState.NEW, 1, NOW) for n in range(count))


def ago(*minutes: float) -> tuple[datetime, ...]:
    return tuple(NOW - timedelta(minutes=each) for each in minutes)


@pytest.mark.parametrize(
    ("due", "told", "said"),
    [
        (0, (), Hold()),
        (1, (), TellEach(alarms(1))),
        (5, (), TellEach(alarms(5))),
        (6, (), TellTogether(alarms(6))),  # a burst is one message at once
        (1, ago(1, 2, 3, 4), TellEach(alarms(1))),  # the fifth within ten minutes
        (2, ago(1, 2, 3, 4), TellTogether(alarms(2))),
        (1, ago(1, 2, 3, 4, 5), Hold()),  # the others wait for the window
        (9, ago(1, 2, 3, 4, 5), Hold()),
        (9, ago(1, 2, 3, 4, 10), TellTogether(alarms(9))),  # the window has moved on
        (1, ago(11, 12, 13, 14, 15), TellEach(alarms(1))),
    ],
)
def test_what_is_told(due: int, told: tuple[datetime, ...], said: Telling) -> None:
    assert telling(alarms(due), told, NOW, PATIENCE) == said
