"""A process is ours by pid and birth; it ends when asked, or is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from deploy.local import processes
from deploy.local.processes import Process

SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"


def started(code: str, folder: Path) -> Process:
    log = folder / "log"
    process = processes.spawn(
        [sys.executable, "-c", code], env=dict(os.environ), cwd=folder, log=log
    )
    assert processes.wait_until(lambda: "up" in log.read_text(), 10)
    return process


def test_it_ends_when_asked_and_leaves_no_zombie(tmp_path: Path) -> None:
    process = started(SLEEPS, tmp_path)
    assert process.is_alive
    process.end()
    assert not process.is_alive
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_one_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    process = started(DEAF, tmp_path)
    process.end(signal.SIGTERM, within=0.2)
    assert not process.is_alive


def test_a_ctrl_c_at_our_terminal_does_not_reach_it(tmp_path: Path) -> None:
    process = started(SLEEPS, tmp_path)
    try:
        assert os.getsid(process.pid) != os.getsid(0)
    finally:
        process.end()


def test_it_is_found_again_by_a_later_run_while_it_lives(tmp_path: Path) -> None:
    note = tmp_path / "note"
    process = started(SLEEPS, tmp_path)
    processes.remember(note, process)
    assert processes.recall(note) == process
    process.end()
    assert processes.recall(note) is None


@pytest.mark.parametrize("text", ["", "nonsense", "1", f"{os.getpid()} another-birth", "0 0"])
def test_a_note_that_fits_no_living_process_names_nobody(text: str, tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text(text)
    assert processes.recall(note) is None


def test_a_stranger_with_our_old_pid_is_not_signalled() -> None:
    stranger = Process(os.getpid(), "another-birth")
    stranger.end(signal.SIGKILL)
    assert not stranger.is_alive
