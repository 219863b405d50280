"""Processes we started, known by pid and birth, so that a reused pid is never mistaken for ours."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ENDED = ("Z", "X")


@dataclass(frozen=True, slots=True)
class Process:
    """One process: its pid, and the moment the kernel says it was born."""

    pid: int
    born: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process runs; a child that has ended is buried on the way."""
        state, born = _look(self.pid)
        if not born or born != self.born:
            return False
        return state not in _ENDED or _still_ending(self.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if the process is still there."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM, within: float = 30) -> None:
        """Ask the process to end, wait, and kill it where it does not."""
        self.send(number)
        if not wait_until(lambda: not self.is_alive, within):
            self.send(signal.SIGKILL)
            wait_until(lambda: not self.is_alive, within)

    def __str__(self) -> str:
        return f"{self.pid} {self.born}"


def spawn(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    user: str | None = None,
) -> Process:
    """Start a process of its own session: a Ctrl-C meant for us does not reach it."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # From here on it is watched by pid and birth, as a later run would: Popen must not claim it.
    child.returncode = 0
    return process_of(child.pid)


def process_of(pid: int) -> Process:
    """The process that has this pid now; one that is gone counts as ended."""
    return Process(pid, _look(pid)[1])


def remember(path: Path, process: Process) -> None:
    """Write down a process for a later run."""
    path.write_text(f"{process}\n")


def recall(path: Path) -> Process | None:
    """The process an earlier run wrote down, if it still runs."""
    pid, _, born = path.read_text().strip().partition(" ") if path.exists() else ("", "", "")
    process = Process(int(pid), born) if pid.isdigit() else None
    return process if process and process.is_alive else None


def forget(path: Path) -> None:
    """Strike out a process that has ended."""
    path.unlink(missing_ok=True)


def wait_until(condition: Callable[[], bool], within: float, pause: float = 0.02) -> bool:
    """Wait for a condition; False when it did not come true in time."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def _still_ending(pid: int) -> bool:
    """Whether a zombie's threads still hold its ports; one of our own is let go when they do not."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:  # somebody else's to bury
        return False


def _look(pid: int) -> tuple[str, str]:
    """The state of a process and when it was born; nothing where there is none."""
    return _look_in_proc(pid) if (_PROC / "self" / "stat").exists() else _look_with_ps(pid)


def _look_in_proc(pid: int) -> tuple[str, str]:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    return fields[0], f"{_boot()}-{fields[19]}"


def _boot() -> str:
    # The birth is counted from boot: the same number after a reboot is another process.
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]


def _look_with_ps(pid: int) -> tuple[str, str]:
    line = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, born = line.partition(" ")
    return state[:1], "_".join(born.split())
