"""The checker: follows every confirmed letter to its end, and says what was lost or came twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Checker:
    """What the test sent, what the broker took, and where each letter turned up in the end.

    A letter may be sent and not confirmed (the link was cut before the broker's word came): then it
    may turn up or not, and neither is a fault.
    """

    sent: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)
    handled: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """How many confirmed letters have not ended yet."""
        return len(self.confirmed - self.handled.keys() - self.dead.keys())

    @property
    def ends(self) -> int:
        """How many ends were seen, second ones included."""
        return self.handled.total() + self.dead.total()

    def report(self) -> Report:
        """The reckoning."""
        ended = self.handled + self.dead
        return Report(
            letters=len(self.confirmed),
            lost=_sorted(self.confirmed - ended.keys() - self.left.keys()),
            unfinished=_sorted(self.left.keys() - ended.keys()),
            recovered=_sorted((self.sent - self.confirmed) & ended.keys()),
            unexpected=_sorted(
                (ended.keys() - self.sent) | (self.handled.keys() & self.dead.keys())
            ),
            duplicates=_copies(self.handled) + _copies(self.dead) + self._copies_left(),
        )

    def _copies_left(self) -> int:
        """Copies still on their way when the test ended, of letters that had ended already."""
        ended = self.handled + self.dead
        return sum(n if letter in ended else n - 1 for letter, n in self.left.items())


@dataclass(frozen=True, slots=True)
class Report:
    """The reckoning, in the words of RabbitMQ's own Jepsen suite.

    * lost: confirmed, and nowhere: neither handled, nor in dlq-queue, nor still on its way.
    * unfinished: still on its way when the test ended.
    * recovered: never confirmed, and there all the same.
    * unexpected: never sent, or both handled and in dlq-queue.
    * duplicates: copies beyond the first, summed over all letters. A letter that the consumer
      accepted three times counts two, one that lies in dlq-queue twice counts one, and a copy found
      in a queue on the way after its letter had ended counts one. A letter that the consumer saw
      and rejected again is not counted: it counts when its copies end.
    """

    letters: int
    lost: tuple[str, ...]
    unfinished: tuple[str, ...]
    recovered: tuple[str, ...]
    unexpected: tuple[str, ...]
    duplicates: int

    def __str__(self) -> str:
        parts = (self.lost, self.unfinished, self.recovered, self.unexpected)
        lost, unfinished, recovered, unexpected = map(len, parts)
        return (
            f"{self.letters} letters: {lost} lost, {unfinished} unfinished, {recovered} recovered, "
            f"{unexpected} unexpected, {self.duplicates} duplicates"
        )

    def demand(self, most: int) -> None:
        """Fail unless every letter came to its one end, with at most so many duplicates."""
        assert self.letters, "no letter was confirmed: nothing was tried"
        for what in ("lost", "unfinished", "unexpected"):
            assert not getattr(self, what), f"{self}; {what}: {getattr(self, what)[:10]}"
        assert self.duplicates <= most, f"{self}; at most {most} duplicates are allowed"


def _sorted(letters: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(letters))


def _copies(ends: Counter[str]) -> int:
    return ends.total() - len(ends)
