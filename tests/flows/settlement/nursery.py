"""The service in a child that is born again whenever it is killed: a fork is quicker than a start."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

import service.composition  # noqa: F401  # what takes seconds to import is imported once
from tests.crash.running import run

CHILD = "DLO_TEST_CHILD"
PR_SET_PDEATHSIG = 1


def child_of(file: Path) -> int:
    """The process that is the service now."""
    return int(file.read_text())


def live() -> None:
    """Be the service, and end with the parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    run(*sys.argv[1:])
    sys.exit(0)


def main() -> None:
    """Raise children until one ends by itself."""
    status = signal.SIGKILL.value
    while status == signal.SIGKILL:
        child = os.fork()
        if not child:
            live()
        Path(os.environ[CHILD]).write_text(str(child))
        status = os.waitpid(child, 0)[1]


if __name__ == "__main__":
    main()
