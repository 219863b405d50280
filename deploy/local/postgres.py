"""A private PostgreSQL server: own folder, socket, password and port, on loopback alone."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from deploy.local import ports, processes
from deploy.local.postgres_programs import environment, program
from deploy.local.trouble import Trouble

START_DEADLINE = 60.0
ACCOUNT = "postgres"  # PostgreSQL refuses to run as root: there this user runs it
_LONGEST_SOCKET = 90  # the kernel's limit is 103 or 107 bytes, with the socket's own name
# Killed servers keep what they committed; only a power cut of the machine would not be survived.
_SETTINGS = {
    "listen_addresses": ports.LOOPBACK,
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
}


class Server:
    """One server; what an earlier, killed run left in the folder is adopted."""

    def __init__(self, folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self.folder, self._settings = folder.resolve(), {**_SETTINGS, **settings}
        self._user = ACCOUNT if os.geteuid() == 0 else None
        self._process = processes.recall(self._pid_file)

    @property
    def is_running(self) -> bool:
        """Whether the server's process is alive."""
        return self._process is not None and self._process.is_alive

    @property
    def pid(self) -> int | None:
        """The pid of the running server."""
        return self._process.pid if self._process and self.is_running else None

    @property
    def port(self) -> int:
        """The server's port, chosen once and kept."""
        return int(self._kept("port", lambda: str(ports.free_port())))

    @property
    def password(self) -> str:
        """The password of the user postgres: other users of this machine do not know it."""
        return self._kept("password", _new_password)

    def url(self, database: str = "postgres") -> str:
        """Where SQLAlchemy finds a database."""
        place = f"{ports.LOOPBACK}:{self.port}/{database}"
        return f"postgresql+asyncpg://postgres:{self.password}@{place}"

    def start(self) -> None:
        """Start the server and wait until it answers a query; a running one is taken as it is."""
        if not self.is_running:
            self._prepare()
        if not processes.wait_until(self._is_up, START_DEADLINE, pause=0.05):
            self.stop()
            raise Trouble(f"PostgreSQL did not start: see {self._log}")

    def stop(self) -> None:
        """Stop the server at once, politely: sessions are ended, data is written."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server as a power cut would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start with the same data and port."""
        self.stop()
        self.start()

    def wipe(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def create_database(self, name: str) -> str:
        """Make an empty database and return its URL."""
        self._run("createdb", name)
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self._run("dropdb", "--force", "--if-exists", name)

    def query(self, sql: str, database: str = "postgres") -> str:
        """Run one statement and return what psql prints."""
        return self._run("psql", "-XAtc", sql, database)

    def _is_up(self) -> bool:
        # Right after a kill the old server's children still hold its memory and the new one
        # refuses to start: it is started again until they are gone.
        if not self.is_running:
            self._launch()
        return (
            ports.answers(self.port) and self._client("psql", "-XAtc", "select 1").returncode == 0
        )

    def _launch(self) -> None:
        if not ports.is_free(self.port):
            (self.folder / "port").unlink()
        settings = self._settings | {
            "port": str(self.port),
            "unix_socket_directories": self._socket,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._process = processes.spawn(
            [program("postgres"), "-D", self._data, *options],
            env=environment(),
            cwd=self.folder,
            log=self._log,
            user=self._user,
        )
        processes.remember(self._pid_file, self._process)

    def _prepare(self) -> None:
        """Make the data, once, owned by the user the server runs as."""
        if (self._data / "PG_VERSION").exists():
            return
        self._kept("password", _new_password)
        self._hand_over()
        words = ["-U", "postgres", "-A", "scram-sha-256", "--encoding=UTF8", "--locale=C"]
        secret = f"--pwfile={self.folder / 'password'}"
        done = subprocess.run(
            [program("initdb"), "-D", self._data, "--no-sync", secret, *words],
            user=self._user,
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Trouble(f"PostgreSQL could not make {self._data}: {_reason(done.stderr)}")

    def _hand_over(self) -> None:
        """Give the folder to the user the server runs as, who must be able to come to it."""
        if self._user is None:
            return
        for path in (self.folder, self.folder / "password"):
            shutil.chown(path, self._user, self._user)
        closed = [path for path in self.folder.parents if not path.stat().st_mode & 0o001]
        if closed:
            raise Trouble(
                f"PostgreSQL runs as {self._user}, who may not enter {closed[-1]}: "
                "choose a folder under /tmp"
            )

    def _run(self, name: str, *words: str) -> str:
        done = self._client(name, *words)
        if done.returncode:
            raise Trouble(f"{name} {' '.join(words)}: {_reason(done.stderr)}")
        return done.stdout.strip()

    def _client(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        where = {"PGHOST": ports.LOOPBACK, "PGPORT": str(self.port), "PGUSER": "postgres"}
        env = environment() | where | {"PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "5"}
        command = [str(program(name)), *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def _end(self, number: signal.Signals) -> None:
        if self._process:
            self._process.end(number)
        processes.forget(self._pid_file)

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        path = self.folder / name
        if not path.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(make())
        return path.read_text()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "server.pid"

    @property
    def _socket(self) -> str:
        return str(self.folder) if len(str(self.folder)) < _LONGEST_SOCKET else ""


def _new_password() -> str:
    return secrets.token_hex(16)


def _reason(text: str) -> str:
    lines = text.strip().splitlines() or ["no reason given"]
    return next((line for line in lines if "error" in line.lower()), lines[-1])
