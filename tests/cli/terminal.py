"""The command line, run as people run it: in a folder, with an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from service.cli.main import app

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "service.cli.main")


def dlo(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env=surroundings(variables),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def surroundings(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: no setting but those given."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DLO_")}
    return {**ours, "PYTHONPATH": str(ROOT), **variables}


def dlo_here(patch: pytest.MonkeyPatch, folder: Path, *words: str, **variables: str) -> Result:
    """The same in this process: for tables of cases, where a process each would take minutes."""
    patch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("DLO_")]:
        patch.delenv(name)
    return CliRunner().invoke(app, words, env=variables)


def sentence(panel: str) -> str:
    """What typer wrote into its panel, without the frame and the line breaks."""
    return " ".join(panel.replace("│", " ").split())
