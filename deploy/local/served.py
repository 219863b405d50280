"""The service as a child: started, asked whether it is ready, ended gracefully."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local import processes

APP = "service.app:app"
# Straight to the service: a proxy named in the environment is not for loopback.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Readiness:
    """What `/readyz` answered: a status, 0 when nobody did, and its words."""

    status: int
    words: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether every dependency is there."""
        return self.status == 200


@dataclass(frozen=True, slots=True)
class Served:
    """The running service and where its web is found."""

    child: subprocess.Popen[bytes]
    link: str

    @property
    def is_running(self) -> bool:
        """Whether the service has not ended."""
        return self.child.poll() is None

    def readiness(self) -> Readiness:
        """Ask the service whether it is ready."""
        try:
            with _OPENER.open(f"{self.link}/readyz", timeout=2) as answer:
                return Readiness(answer.status, _words(answer.read()))
        except urllib.error.HTTPError as refusal:
            return Readiness(refusal.code, _words(refusal.read()))
        except OSError:
            return Readiness(0)

    def end(self, grace: float) -> None:
        """Ask the service to end, and kill it where it takes longer than it may."""
        if self.is_running:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(grace)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def serve(root: Path, host: str, port: int, env: Mapping[str, str], note: Path) -> Served:
    """Start the service; its own sentences go to our terminal."""
    place = ["--host", host, "--port", str(port)]
    child = subprocess.Popen(
        [sys.executable, "-m", "faststream", "run", APP, *place],
        cwd=root,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is for us; the service is asked afterwards
    )
    processes.remember(note, processes.process_of(child.pid))
    return Served(child, f"http://{_reachable(host)}:{port}")


def _words(body: bytes) -> str:
    return " ".join(body[:2_000].decode("utf-8", "replace").split())


def _reachable(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host
