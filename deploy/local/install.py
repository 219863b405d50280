"""Installing the servers that are missing, or saying the one line that would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local import needs
from deploy.local.needs import Need
from deploy.local.trouble import Trouble

Run = Callable[[Sequence[str]], int]
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine lets us do."""

    is_root: bool
    has_apt: bool
    has_brew: bool
    may_sudo: bool  # without being asked for a password


@dataclass(frozen=True, slots=True)
class AptGet:
    """Install Debian packages, as root or through sudo."""

    needs: tuple[Need, ...]
    sudo: bool


@dataclass(frozen=True, slots=True)
class Brew:
    """Install Homebrew formulae."""

    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """We may not: this line, typed by a person, would do it."""

    needs: tuple[Need, ...]
    line: str


Step = AptGet | Brew | Ask


def decide(missing: Sequence[Need], machine: Machine) -> Step:
    """How the missing programs come onto this machine."""
    wanted = tuple(missing)
    match machine:
        case Machine(has_apt=True, is_root=True):
            return AptGet(wanted, sudo=False)
        case Machine(has_apt=True, may_sudo=True):
            return AptGet(wanted, sudo=True)
        case Machine(has_apt=True):
            return Ask(wanted, f"sudo apt-get install {' '.join(apt_packages(wanted))}")
        case Machine(has_brew=True):
            return Brew(wanted)
    return Ask(wanted, f"install {titles(wanted)} with this machine's package manager")


def carry_out(step: Step, run: Run, say: Callable[[str], None]) -> None:
    """Do it, saying what; Trouble when it may not be done or does not work."""
    what = titles(step.needs)
    match step:
        case AptGet(sudo=sudo):
            say(f"{what} not found: installing with apt-get, about a minute, no service is started")
            command = [sys.executable, "-B", "-m", "deploy.local.debian", *_names(step.needs)]
            code = run([*(["sudo", "-n"] if sudo else []), *command])
        case Brew():
            formulae = [name for need in step.needs for name in need.brew]
            say(f"{what} not found: installing with brew install {' '.join(formulae)}")
            code = run(["brew", "install", *formulae])
        case Ask(line=line):
            raise Trouble(
                f"{what} not found, and installing needs rights we do not have. Type: {line}"
            )
    if code:
        raise Trouble(f"installing {what} failed (exit {code}): install it by hand and try again")


def ensure(wanted: Sequence[Need], say: Callable[[str], None] = print) -> None:
    """Make sure the programs are there; nothing is said or done when they are."""
    missing = [need for need in wanted if not need.is_met()]
    if not missing:
        return
    carry_out(decide(missing, this_machine()), _run, say)
    if still := [need for need in missing if not need.is_met()]:
        raise Trouble(f"{titles(still)} installed, but not found where it should be")


def this_machine() -> Machine:
    """What we find here."""
    return Machine(
        is_root=os.geteuid() == 0,
        has_apt=shutil.which("apt-get") is not None,
        has_brew=shutil.which("brew") is not None,
        may_sudo=shutil.which("sudo") is not None and _run(["sudo", "-n", "true"], quiet=True) == 0,
    )


def titles(wanted: Sequence[Need]) -> str:
    """The programs as a person calls them."""
    return " and ".join(need.title for need in wanted)


def apt_packages(wanted: Sequence[Need]) -> list[str]:
    """The programs as Debian calls them."""
    return [package for need in wanted for package in need.apt]


def _names(wanted: Sequence[Need]) -> list[str]:
    return [name for name, need in needs.BY_NAME.items() if need in wanted]


def _run(command: Sequence[str], quiet: bool = False) -> int:
    output = subprocess.DEVNULL if quiet else None
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
    )
    return done.returncode


def main(names: Sequence[str]) -> int:
    """`python -m deploy.local.install rabbitmq postgresql node`."""
    unknown = [name for name in names if name not in needs.BY_NAME]
    if unknown or not names:
        print(f"usage: install NAME…, each one of {', '.join(needs.BY_NAME)}", file=sys.stderr)
        return 2
    try:
        ensure([needs.BY_NAME[name] for name in names], lambda line: print(line, flush=True))
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
