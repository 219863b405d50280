"""Where PostgreSQL's programs are, and the environment they run in."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from deploy.local.trouble import Trouble

_BIN_FOLDERS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
)


def bin_folder() -> Path | None:
    """Where the newest installed server keeps its programs, if there is one."""
    found = [path for pattern in _BIN_FOLDERS for path in Path("/").glob(pattern)]
    servers = sorted((path for path in found if (path / "initdb").exists()), key=_major)
    on_path = shutil.which("initdb")
    return servers[-1] if servers else Path(on_path).parent if on_path else None


def program(name: str) -> Path:
    """One of the programs, which must be there."""
    folder = bin_folder()
    if folder is None:
        raise Trouble(f"PostgreSQL's {name} is not installed: install the package postgresql")
    return folder / name


def environment() -> dict[str, str]:
    """Our environment without the PG* variables, which would lead to somebody else's server."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return ours | {"LC_ALL": "C"}


def _major(folder: Path) -> int:
    number = re.search(r"(\d+)", str(folder))
    return int(number.group(1)) if number else 0
