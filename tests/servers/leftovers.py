"""Folders of test servers under the temporary folder, each with the run it belongs to."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from deploy.local import processes
from deploy.local.postgres import Server
from deploy.local.rabbitmq import Node

PREFIX = "dlo-tests-"
_OWNER = "owner.pid"


def new_folder() -> Path:
    """A short path of our own, which the user PostgreSQL runs as can enter."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    folder.chmod(0o755)
    (folder / _OWNER).write_text(this_run())
    return folder


def this_run() -> str:
    """The run we are in, as it is written down."""
    return str(processes.process_of(os.getpid()))


def sweep(place: Path | None = None) -> None:
    """End the servers of test runs that were killed before they could do it themselves."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        if _is_orphan(folder):
            clear(folder)


def clear(folder: Path) -> None:
    """End whatever runs below one folder and remove it."""
    for note in folder.rglob("service.pid"):
        if service := processes.recall(note):
            service.end()
    for note in folder.rglob("ports.json"):
        Node(note.parent).stop()
    for note in folder.rglob("server.pid"):
        Server(note.parent).stop()
    shutil.rmtree(folder, ignore_errors=True)


def _is_orphan(folder: Path) -> bool:
    """Whether the run it belonged to has ended; other people's folders are theirs."""
    owner = folder / _OWNER
    mine = folder.stat().st_uid == os.geteuid()
    return mine and owner.exists() and processes.recall(owner) is None
