"""`just pin`: the exact version of every package, written into pyproject.toml."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from deploy.local.folder import ROOT
from deploy.local.trouble import Trouble

_TABLE = re.compile(r"^\[tool\.uv\]\n", re.MULTILINE)
_PINS = re.compile(r"^constraint-dependencies = \[.*?^\]\n", re.MULTILINE | re.DOTALL)
_PACKAGE = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(\[.*\])?==(?P<version>[^\s;]+)\s*(;(?P<marker>.*))?$"
)
_EXPORT = ("export", "--format=requirements-txt", "--no-hashes", "--no-annotate", "--no-header")


def pins(exported: str) -> list[str]:
    """`name==version` per package; its marker only where one name has several versions."""
    found = [match for line in exported.splitlines() if (match := _PACKAGE.match(line.strip()))]
    versions: dict[str, set[str]] = {}
    for match in found:
        versions.setdefault(match["name"], set()).add(match["version"])
    return sorted({_pin(match, several=len(versions[match["name"]]) > 1) for match in found})


def pinned(pyproject: str, lines: Iterable[str]) -> str:
    """The project file with these pins in the place of the old ones."""
    entries = "".join(f'    "{line}",\n' for line in lines)
    block = f"constraint-dependencies = [\n{entries}]\n" if entries else ""
    if _PINS.search(pyproject):
        return _PINS.sub(lambda _: block, pyproject, count=1)
    if _TABLE.search(pyproject):
        return _TABLE.sub(lambda table: table[0] + block, pyproject, count=1)
    return f"{pyproject.rstrip()}\n\n[tool.uv]\n{block}" if block else pyproject


def _pin(match: re.Match[str], several: bool) -> str:
    marker = (match["marker"] or "").strip().replace('"', "'")
    exact = f"{match['name']}=={match['version']}"
    return f"{exact} ; {marker}" if several and marker else exact


def _resolve(upgrade: bool) -> str:
    """Every package uv would install, on any machine this project supports."""
    newer = ["--upgrade"] if upgrade else []
    everything = ["--all-groups", "--all-extras", "--no-emit-project"]
    command = [os.environ.get("UV", "uv"), *_EXPORT, *everything, *newer]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble(f"uv could not resolve the packages:\n{done.stderr.strip()}")
    return done.stdout


def write(path: Path, upgrade: bool) -> int:
    """Write the pins; how many there are."""
    before = path.read_text()
    try:
        if upgrade:
            path.write_text(pinned(before, []))  # the old pins would hold everything where it is
        lines = pins(_resolve(upgrade))
    except Trouble:
        path.write_text(before)
        raise
    path.write_text(pinned(before, lines))
    return len(lines)


def main(arguments: Sequence[str]) -> int:
    """`python -m deploy.local.pin [--upgrade]`."""
    try:
        count = write(ROOT / "pyproject.toml", "--upgrade" in arguments)
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        return 1
    print(f"pyproject.toml names {count} exact versions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
