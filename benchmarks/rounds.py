"""Rounds, turn and turn about, and what they say in the end: the machine is noisy, the ratio counts."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.rabbitmq import Node

Figures = dict[str, float]
Round = Callable[[int], Figures]
"""Moves so many letters and says how long that took, and how much CPU."""


@dataclass
class Contender:
    """Somebody who moves letters, and how it went."""

    name: str
    run: Round
    letters: int
    rounds: list[Figures] = field(default_factory=list)

    def go(self) -> None:
        """One round."""
        self.rounds.append(self.run(self.letters))
        print(
            f"  {self.name}: {self.letters / self.rounds[-1]['seconds']:.0f} letters/s", flush=True
        )

    @property
    def rates(self) -> list[float]:
        """Letters a second, by round."""
        return [self.letters / figures["seconds"] for figures in self.rounds]

    @property
    def rate(self) -> float:
        """The median."""
        return statistics.median(self.rates)

    @property
    def cpu(self) -> float | None:
        """Microseconds of CPU for a letter, the median."""
        used = [figures["cpu"] for figures in self.rounds if "cpu" in figures]
        return statistics.median(used) / self.letters * 1e6 if used else None

    def __str__(self) -> str:
        spread = f"{min(self.rates):.0f}–{max(self.rates):.0f}"
        cost = "" if self.cpu is None else f", {self.cpu:.0f} µs CPU a letter"
        return f"{self.name}: {self.rate:.0f} letters/s ({spread}){cost}"


def against(ours: Contender, theirs: Contender) -> str:
    """Our rate over theirs, round by round: noise that lasts longer than a round hits both."""
    ratios = [mine / other for mine, other in zip(ours.rates, theirs.rates, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def in_process(module: str, url: str, *words: str) -> Round:
    """A module that moves letters, in a process of its own."""

    def run(letters: int) -> Figures:
        command = [sys.executable, "-m", module, url, str(letters), *words]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        figures: Figures = json.loads(done.stdout)
        return figures

    return run


def play(contenders: Mapping[str, Contender], rounds: int) -> None:
    """Rounds turn and turn about, then the medians."""
    for number in range(1, rounds + 1):
        print(f"round {number}")
        for contender in contenders.values():
            contender.go()
    print(f"\nmedians of {rounds} rounds, load {os.getloadavg()[0]:.1f} at the end:")
    for contender in contenders.values():
        print(f"  {contender}")


@contextmanager
def broker(*plugins: str) -> Iterator[tuple[str, Node | None]]:
    """The broker that DLO_TEST_RABBIT_URL names, else a private node."""
    if named := os.environ.get("DLO_TEST_RABBIT_URL"):
        yield named, None
        return
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder) / "rabbitmq", plugins=plugins)
        node.start()
        try:
            yield node.url, node
        finally:
            node.stop()
