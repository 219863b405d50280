"""The signal to stop: it rings, and whoever waits notices; nothing is torn out of its middle."""

from __future__ import annotations

import signal
from collections.abc import Callable

from deploy.local.processes import wait_until


class Stopped(Exception):
    """Somebody asked us to stop."""


class Bell:
    """Rung by Ctrl-C, by SIGTERM and by a closing terminal, as often as they like."""

    def __init__(self) -> None:
        self.rung = False

    def listen(self) -> None:
        """Ring on every signal that means stop."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ring)

    def wait_until(self, condition: Callable[[], bool], within: float) -> bool:
        """Wait for a condition, for so long; Stopped as soon as the bell rings."""
        met = wait_until(lambda: self.rung or condition(), within, pause=0.2)
        if self.rung:
            raise Stopped
        return met

    def _ring(self, _number: int, _frame: object) -> None:
        self.rung = True
