"""apt-get as root, on a machine that is not ours: no service is started, nothing else is changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deploy.local import needs
from deploy.local.install import apt_packages

Run = Callable[[Sequence[str]], int]

POLICY = Path("/usr/sbin/policy-rc.d")
CLUSTERS = Path("/etc/postgresql-common/createcluster.d")
_NO_SERVICES = "#!/bin/sh\n# Nothing is started while packages are being installed.\nexit 101\n"
_NO_CLUSTER = "create_main_cluster = false\n"
_INSTALL = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
_WAIT = ("-o", "DPkg::Lock::Timeout=300")  # somebody else may be installing


def install(packages: Sequence[str], services: Sequence[str], run: Run) -> int:
    """Install packages; their services neither start now nor at the next boot."""
    with ExitStack() as meanwhile:
        meanwhile.enter_context(no_services_started(POLICY))
        meanwhile.enter_context(no_cluster_created(CLUSTERS))
        code = install_packages(packages, run)
    if code == 0 and services and Path("/run/systemd/system").exists():
        run(["systemctl", "disable", "--quiet", *services])
    return code


def install_packages(packages: Sequence[str], run: Run) -> int:
    """Install, reading the package lists first only where they do not know the packages."""
    known = run(["apt-cache", "show", *packages]) == 0
    if not known and (code := run(["apt-get", "update", "-qq", *_WAIT])):
        return code
    code = run([*_INSTALL, *_WAIT, *packages])
    if code and known:  # the lists were older than the archive
        code = run(["apt-get", "update", "-qq", *_WAIT]) or run([*_INSTALL, *_WAIT, *packages])
    return code


@contextmanager
def no_services_started(policy: Path) -> Iterator[None]:
    """Put our policy-rc.d in the place of the machine's, and that one back afterwards."""
    saved = policy.with_name(f"{policy.name}.dead-letter-office")
    # A run killed in the middle has left our file here, and the machine's own under that name.
    if _is_there(policy) and not _is_ours(policy) and not _is_there(saved):
        policy.rename(saved)
    policy.unlink(missing_ok=True)
    policy.write_text(_NO_SERVICES)
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink(missing_ok=True)
        if _is_there(saved):
            saved.rename(policy)


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)  # a link that leads nowhere is somebody's too


def _is_ours(path: Path) -> bool:
    return path.exists() and path.read_bytes() == _NO_SERVICES.encode()


@contextmanager
def no_cluster_created(folder: Path) -> Iterator[None]:
    """Keep PostgreSQL's packages from making a server of their own."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "dead-letter-office.conf"
    note.write_text(_NO_CLUSTER)
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
        for path in made:
            if not any(path.iterdir()):
                path.rmdir()


def _run(command: Sequence[str]) -> int:
    """Run quietly; where it fails, show what it said."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode and command[0] == "apt-get":
        print("\n".join(done.stdout.strip().splitlines()[-10:]), file=sys.stderr)
    return done.returncode


def main(names: Sequence[str]) -> int:
    """`python -m deploy.local.debian rabbitmq postgresql node`, as root."""
    # A SIGTERM unwinds like Ctrl-C, so that the machine's own files come back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = [needs.BY_NAME[name] for name in names]
    services = [service for need in wanted for service in need.services]
    return install(apt_packages(wanted), services, _run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
