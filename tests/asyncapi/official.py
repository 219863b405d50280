"""The official AsyncAPI parser, installed from npm under `.dlo/` when it is first asked for."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.local import needs
from tests.servers.fixtures import demand

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("parse.mjs")
FOLDER = ROOT / ".dlo" / "npm"
PARSER = "@asyncapi/parser@3.6.3"  # runs on Node 18 (Debian 12) and later


@dataclass(frozen=True)
class Verdict:
    """What the parser has to say, by severity, and how much it has looked at."""

    errors: list[str]
    hints: list[str]
    messages: int
    examples: int


def parse(*documents: Path) -> list[Verdict]:
    """Have the official parser read these documents, all in one process: it takes seconds to start."""
    demand(needs.NODE)
    _installed()
    run = subprocess.run(
        ["node", str(SCRIPT), str(FOLDER), *map(str, documents)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [_verdict(said) for said in json.loads(run.stdout)]


def _verdict(said: dict[str, Any]) -> Verdict:
    hard = [_line(one) for one in said["found"] if one["severity"] in ("error", "warning")]
    soft = [one["code"] for one in said["found"] if one["severity"] not in ("error", "warning")]
    return Verdict(hard, soft, said["messages"], said["examples"])


def _line(found: dict[str, str]) -> str:
    return f"{found['severity']} {found['code']} at {found['path']}: {found['message']}"


def _installed() -> None:
    """Install once; the stamp is written last, so that an interrupted install is done again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stamp = FOLDER / "installed"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs of the tests share the folder
        if not stamp.exists() or stamp.read_text() != PARSER:
            _install()
            stamp.write_text(PARSER)


def _install() -> None:
    quiet = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    run = subprocess.run(
        ["npm", "install", "--prefix", str(FOLDER), *quiet, PARSER],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if run.returncode:
        said = (run.stderr.strip() or run.stdout.strip()).splitlines()
        reason = f"npm could not install {PARSER}: {said[-1] if said else 'it gave no reason'}"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
