"""TCP ports on loopback: which are free, and which may be chosen."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Iterator

LOOPBACK = "127.0.0.1"
# Linux hands out ports from 32768 up to outgoing connections: a server there may find its port lent.
LOWEST, HIGHEST = 15_000, 32_767


def is_free(port: int) -> bool:
    """Whether nobody listens on the port and we could."""
    return not answers(port) and _can_bind(port)


def answers(port: int, timeout: float = 0.5) -> bool:
    """Whether somebody accepts connections on the port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout):
            return True
    except OSError:
        return False


def free_port(taken: Iterable[int] = ()) -> int:
    """A free port, drawn by lot so that two programs choosing at once seldom meet."""
    avoided = set(taken)
    return next(port for port in _by_lot() if port not in avoided and is_free(port))


def first_free(wanted: int, tries: int = 100) -> int:
    """The wanted port if it is free, else the next one that is."""
    return next(port for port in range(wanted, wanted + tries) if is_free(port))


def _by_lot() -> Iterator[int]:
    while True:
        yield random.randint(LOWEST, HIGHEST)


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        # Without this a port whose last connection closed a minute ago looks taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
