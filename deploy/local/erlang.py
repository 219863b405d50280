"""Erlang around a private node: where its programs are, its cookie, and its own name server."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.local import ports, processes
from deploy.local.trouble import Trouble

# The scripts themselves come first: the wrappers on Debian's PATH switch to another user.
_SCRIPT_FOLDERS = (
    "/usr/lib/rabbitmq/bin",
    "/opt/homebrew/opt/rabbitmq/sbin",
    "/usr/local/opt/rabbitmq/sbin",
)
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/homebrew/bin"


def rabbitmq_script(name: str) -> Path | None:
    """Where a RabbitMQ program is installed, if it is."""
    candidates = [Path(folder) / name for folder in _SCRIPT_FOLDERS]
    found = next((path for path in candidates if os.access(path, os.X_OK)), None)
    on_path = shutil.which(name)
    return found or (Path(on_path) if on_path else None)


def environment(home: Path, epmd_port: int) -> dict[str, str]:
    """A clean environment in which Erlang knows only our cookie and our name server."""
    return {
        "PATH": f"{_SYSTEM_PATH}:{os.environ.get('PATH', '')}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": ports.LOOPBACK,
    }


def keep_cookie(home: Path) -> None:
    """Make the secret by which nodes and tools of this home know each other, once."""
    cookie = home / ".erlang.cookie"
    if not cookie.exists():
        cookie.touch(mode=0o600)
        cookie.write_text(secrets.token_hex(24))
    cookie.chmod(0o400)  # Erlang refuses a cookie that others may read


@dataclass(frozen=True, slots=True)
class Epmd:
    """Erlang's name server, ours alone: on its own port, with its pid written down."""

    home: Path
    port: int

    @property
    def process(self) -> processes.Process | None:
        """The running name server, also one left over by a killed run."""
        return processes.recall(self._pid_file)

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.process:
            return
        command = [_epmd_program(), "-port", str(self.port), "-address", ports.LOOPBACK]
        env = environment(self.home, self.port)
        process = processes.spawn(command, env=env, cwd=self.home, log=self.home / "epmd.log")
        processes.remember(self._pid_file, process)
        if not processes.wait_until(lambda: ports.answers(self.port), 10):
            raise Trouble(f"epmd did not start on port {self.port}: see {self.home / 'epmd.log'}")

    def stop(self) -> None:
        """Stop it by pid."""
        if process := self.process:
            process.end(within=5)
        processes.forget(self._pid_file)

    @property
    def _pid_file(self) -> Path:
        return self.home / "epmd.pid"


def _epmd_program() -> str:
    unlinked = sorted(Path("/usr/lib/erlang").glob("erts-*/bin/epmd"))
    program = shutil.which("epmd", path=f"{_SYSTEM_PATH}:{os.environ.get('PATH', '')}")
    if not program and not unlinked:
        raise Trouble("epmd, Erlang's name server, is not installed: install Erlang")
    return program or str(unlinked[-1])
