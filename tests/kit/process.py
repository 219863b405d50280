"""The service as its users run it: a process of its own, started by `faststream run`."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import psutil

from deploy.local.ports import free_port
from tests.servers.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
KEY = "a key for the tests, long enough"


@dataclass
class Service:
    """A service that can be started, asked, ended politely or not."""

    environment: Mapping[str, str]
    folder: Path
    command: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    async def start(self, *, ready: bool = True) -> None:
        """Start it, and wait until it answers that letters move."""
        self.spawn()
        if ready:
            await eventually(self.is_ready, within=30)

    def spawn(self) -> None:
        """Start it, and wait for nothing."""
        self.starts += 1
        self.process = subprocess.Popen(
            [*(self.command or faststream()), "--host", "127.0.0.1", "--port", str(self.port)],
            cwd=ROOT,
            env={**os.environ, **compiled(), **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=self._log(),
        )

    def kill(self) -> None:
        """`kill -9`."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        return self._end(signal.SIGTERM)

    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def is_ready(self) -> bool:
        """`/readyz` says 200."""
        assert self.is_running(), f"the service ended:\n{self.said()}"
        return self.get("/readyz")[0] == 200

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON (or text) of a GET; status 0 where nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, _read(answer.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, _read(refusal.read())
        except OSError:
            return 0, None

    def said(self) -> str:
        """Everything it wrote to stderr, over all its lives."""
        log = self.folder / "service.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def lines(self, action: str = "") -> list[dict[str, Any]]:
        """Its log lines; only those of one action where one is named."""
        lines = [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]
        return [line for line in lines if not action or line.get("action") == action]

    def verdicts(self, kind: str) -> list[dict[str, Any]]:
        """The verdicts of one kind that it wrote down."""
        return [line for line in self.lines() if line.get("verdict") == kind]

    def connections(self, port: int) -> frozenset[int]:
        """Its connections to a port, by their own ports: another one has another number."""
        assert self.process is not None
        open_now = psutil.Process(self.process.pid).net_connections("tcp")
        return frozenset(c.laddr.port for c in open_now if c.raddr and c.raddr.port == port)

    def memory(self) -> int:
        """Bytes of memory it holds."""
        assert self.process is not None
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def interrupt(self) -> int:
        """Ctrl-C, and its exit code."""
        return self._end(signal.SIGINT)

    def _log(self) -> IO[bytes]:
        return (self.folder / "service.log").open("ab")

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=40)


@cache
def compiled() -> dict[str, str]:
    """Where bytecode may not be written beside the source, every start would compile everything
    anew, for seconds: it is kept elsewhere for the time of this run."""
    if not sys.flags.dont_write_bytecode:
        return {}
    folder = tempfile.mkdtemp(prefix="dlo-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}


def faststream() -> tuple[str, ...]:
    """The command of the README, in this interpreter."""
    return (sys.executable, "-m", "faststream", "run", "service.app:app")


def environment(rabbit_url: str, database_url: str, **settings: str) -> dict[str, str]:
    """Settings for a test: signed marks, waits of tenths of a second, the central processor alone,
    no drill; dead letters stay in their queues, where tests look for them."""
    return {
        "DLO_FLOWS": '["dlq_processor"]',
        "DLO_RABBIT__URL": rabbit_url,
        "DLO_RABBIT__RECONNECT": "500ms",
        "DLO_DATABASE__URL": database_url,
        "DLO_DATABASE__POLL": "100ms",
        "DLO_MARKS__KEY": KEY,
        "DLO_DLQ_PROCESSOR__TIERS": '["100ms","150ms","200ms"]',
        "DLO_DLQ_PROCESSOR__DRILL": "false",
        "DLO_LEDGER__INTAKE": "false",
        "DLO_LOG__FORMAT": "json",
        **settings,
    }


@asynccontextmanager
async def running(service: Service, *, ready: bool = True) -> AsyncIterator[Service]:
    """The service, for the time of a test."""
    try:
        await service.start(ready=ready)
        yield service
    finally:
        service.kill()


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
