"""`just bench growth`: what a letter costs on the wire lane as letters, backlog and routes grow.

Cost is the service's own CPU for a letter: it must grow with bytes and with nothing else. Of a backlog
the first ten thousand letters are moved, so that half a million need not be.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from benchmarks.rounds import Contender, broker, in_process, play

ROUNDS = int(os.environ.get("DLO_TEST_ROUNDS", "3"))
BACKLOG = int(os.environ.get("DLO_TEST_BACKLOG", "500000"))
MOST = 1.1


@dataclass(frozen=True)
class Case:
    """So many letters of so many bytes are moved, with so many routes, of so many that wait."""

    letters: int
    size: int = 1024
    routes: int = 10
    waiting: int = 0
    keys: int = 1

    @property
    def words(self) -> tuple[str, ...]:
        """As `benchmarks.office` takes them."""
        return ("wire", str(self.size), str(self.routes), str(self.waiting), str(self.keys))


SIZES = {
    "100 B": Case(10_000, size=100),
    "1 KiB": Case(10_000),
    "64 KiB": Case(2_000, size=64 * 1024),
    "1 MiB": Case(200, size=1024 * 1024),
}
ROUTES = {"10 routes": Case(10_000), "100 000 routes": Case(10_000, routes=100_000)}
KEYS = {
    "letters of 10 routes": Case(10_000, keys=10),
    "every letter of a route of its own": Case(10_000, routes=100_000, keys=10_000),
}
BACKLOGS = {"10 000 waiting": Case(10_000), f"{BACKLOG} waiting": Case(10_000, waiting=BACKLOG)}


def compare(url: str, cases: dict[str, Case], rounds: int) -> list[Contender]:
    """The same hop, one thing changed."""
    found = {
        name: Contender(
            name,
            in_process("benchmarks.office", url, *case.words),
            case.letters,
        )
        for name, case in cases.items()
    }
    play(found, rounds)
    return list(found.values())


def ratio(small: Contender, large: Contender) -> float:
    """How much more a letter costs."""
    assert small.cpu is not None
    assert large.cpu is not None
    return large.cpu / small.cpu


def main() -> None:
    """Three comparisons, each on the same broker."""
    with broker() as (url, _node):
        compare(url, SIZES, ROUNDS)
        routes = ratio(*compare(url, ROUTES, ROUNDS))
        keys = ratio(*compare(url, KEYS, ROUNDS))
        backlog = ratio(*compare(url, BACKLOGS, 1))
    print(f"\n100 000 routes cost {routes:.2f} of 10 (goal: at most {MOST})")
    print(f"letters that all come by another of them cost {keys:.2f} of letters that come by 10")
    print(f"a backlog of {BACKLOG} costs {backlog:.2f} of 10 000 (goal: at most {MOST})")


if __name__ == "__main__":
    main()
