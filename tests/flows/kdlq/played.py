"""What is left of a scenario that was played, in the same words on every broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.core.marks import KDLQ, MARKER, ORIG_OFFSET, ORIG_PARTITION, REASON
from service.flows.kdlq.counters import number
from tests.flows.kdlq.scenarios import Scenario

ON_RABBITMQ = frozenset({ORIG_OFFSET, ORIG_PARTITION})


@dataclass(frozen=True)
class Played:
    """What was told, what lies in the DLQ and among the skipped, and what is left unsettled."""

    told: tuple[str, ...]
    dead: tuple[Mapping[str, object], ...]
    skipped: tuple[Mapping[str, object], ...]
    left: int


def check(scenario: Scenario, played: Played, lacks: frozenset[str] = frozenset()) -> None:
    """Whether it went as the table says; a broker may lack some informational headers.

    A copy may be handled while its hook is told: the order of hooks is that of one delivery.
    """
    assert sorted(played.told) == sorted(scenario.told)
    expected = scenario.dead
    wanted = [] if expected is None else [{n: v for n, v in expected.items() if n not in lacks}]
    assert [kdlq_headers(headers) for headers in played.dead] == wanted
    assert len(played.skipped) == scenario.skipped
    assert all(REASON in headers for headers in (*played.dead, *played.skipped))
    assert played.left == 0


def kdlq_headers(headers: Mapping[str, object]) -> dict[str, object]:
    """KDLQ's own, counters as numbers however they are written."""
    return {
        name: value if name == MARKER else number(value)
        for name, value in headers.items()
        if name in KDLQ
    }
