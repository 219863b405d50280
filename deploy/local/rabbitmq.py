"""A private RabbitMQ node: own folder, cookie, name server and ports, on loopback alone."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.local import erlang, ports, processes
from deploy.local.handshake import Greeting, greet
from deploy.local.trouble import Trouble

NAME = "office@localhost"
START_DEADLINE = 90.0

# Two cores are plenty for one person; fewer schedulers start faster and idle quieter.
_ERL_ARGS = "+S 2:2 +SDcpu 1:1 +SDio 2 -kernel inet_dist_use_interface {127,0,0,1}"
_CONF = """\
listeners.tcp.default = {host}:{port}
log.console = false
disk_free_limit.absolute = 200MB
vm_memory_high_watermark.absolute = 1GB
collect_statistics_interval = 30000
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """The three ports of a node: for clients, for other Erlang nodes, for its name server."""

    amqp: int
    distribution: int
    epmd: int

    @classmethod
    def choose(cls) -> Ports:
        """Three free ports."""
        amqp = ports.free_port()
        distribution = ports.free_port({amqp})
        return cls(amqp, distribution, ports.free_port({amqp, distribution}))

    @property
    def are_free(self) -> bool:
        """Whether nobody has taken one of them since they were chosen."""
        return all(ports.is_free(port) for port in (self.amqp, self.distribution, self.epmd))


class Node:
    """One node and its name server; what an earlier, killed run left in the folder is adopted."""

    def __init__(
        self,
        folder: Path,
        definitions: Mapping[str, object] | None = None,
        plugins: Sequence[str] = (),
    ) -> None:
        self.folder = folder.resolve()
        self._definitions, self._plugins = definitions, plugins
        self._process = processes.recall(self._pid_file)

    @property
    def ports(self) -> Ports:
        """The ports this folder's node has, chosen once and kept."""
        if not self._ports_file.exists():
            self._keep_ports(Ports.choose())
        return Ports(**json.loads(self._ports_file.read_text()))

    @property
    def url(self) -> str:
        """Where clients find the node."""
        return f"amqp://guest:guest@{ports.LOOPBACK}:{self.ports.amqp}/"

    @property
    def is_running(self) -> bool:
        """Whether the node's process is alive."""
        return self._process is not None and self._process.is_alive

    @property
    def pid(self) -> int | None:
        """The pid of the running node."""
        return self._process.pid if self._process and self.is_running else None

    def start(self) -> Greeting:
        """Start the node and wait until it greets a client; a running one is taken as it is."""
        self.launch()
        return self.wait()

    def launch(self) -> None:
        """Start the node without waiting for it."""
        if self.is_running:
            self._epmd.start()
            return
        self._prepare()
        self._epmd.start()
        self._process = processes.spawn(
            [_script("rabbitmq-server")], env=self._env(), cwd=self.folder, log=self._log
        )
        processes.remember(self._pid_file, self._process)

    def wait(self, within: float = START_DEADLINE) -> Greeting:
        """Wait until the node greets a client."""
        answered = processes.wait_until(
            lambda: not self.is_running or self.greeting() is not None, within, pause=0.05
        )
        greeting = self.greeting()
        if not answered or greeting is None:
            last = self._last_words()
            self.stop()
            raise Trouble(f"RabbitMQ did not start{last}. Its log is in {self.folder / 'log'}")
        return greeting

    def greeting(self) -> Greeting | None:
        """What the node says to a client now."""
        return greet(ports.LOOPBACK, self.ports.amqp) if self._ports_file.exists() else None

    def stop(self) -> None:
        """Stop the node as it wants to be stopped, then its name server."""
        self._end(signal.SIGTERM)
        if self._ports_file.exists():
            self._epmd.stop()

    def kill(self) -> None:
        """Kill the node as a power cut would; its name server stays for the next start."""
        self._end(signal.SIGKILL)

    def restart(self) -> Greeting:
        """Stop and start with the same data and ports."""
        self.stop()
        return self.start()

    def wipe(self) -> None:
        """Stop the node and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ctl(self, *words: str, timeout: float = 60) -> str:
        """Run rabbitmqctl on this node and return what it prints."""
        command = [str(_script("rabbitmqctl")), "-n", NAME, *words]
        done = subprocess.run(
            command, env=self._env(), capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode:
            raise Trouble(f"rabbitmqctl {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    @property
    def _epmd(self) -> erlang.Epmd:
        return erlang.Epmd(self.folder, self.ports.epmd)

    @property
    def _pid_file(self) -> Path:
        return self.folder / "node.pid"

    @property
    def _ports_file(self) -> Path:
        return self.folder / "ports.json"

    @property
    def _log(self) -> Path:
        return self.folder / "log" / "console"

    def _keep_ports(self, chosen: Ports) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._ports_file.write_text(json.dumps(asdict(chosen)))

    def _prepare(self) -> None:
        """Write everything the node reads at its start."""
        for folder in (self.folder, self.folder / "data", self.folder / "log"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._epmd.stop()
        if not self.ports.are_free:
            self._keep_ports(Ports.choose())
        erlang.keep_cookie(self.folder)
        self._log.unlink(missing_ok=True)
        (self.folder / "enabled_plugins").write_text(f"[{','.join(self._plugins)}].\n")
        (self.folder / "rabbitmq.conf").write_text(self._configuration())

    def _configuration(self) -> str:
        text = _CONF.format(host=ports.LOOPBACK, port=self.ports.amqp)
        if self._definitions is None:
            return text
        path = self.folder / "definitions.json"
        path.write_text(json.dumps(self._definitions))
        return f"{text}load_definitions = {path}\n"

    def _env(self) -> dict[str, str]:
        here = self.folder
        return erlang.environment(here, self.ports.epmd) | {
            # The script then becomes the node itself: its pid is the node's, signals go there.
            "detached": "1",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_NODENAME": NAME,
            "RABBITMQ_NODE_IP_ADDRESS": ports.LOOPBACK,
            "RABBITMQ_NODE_PORT": str(self.ports.amqp),
            "RABBITMQ_DIST_PORT": str(self.ports.distribution),
            "RABBITMQ_MNESIA_BASE": str(here / "data"),
            "RABBITMQ_LOG_BASE": str(here / "log"),
            "RABBITMQ_PID_FILE": str(here / "rabbitmq.pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(here / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(here / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(here / "advanced.config"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(here / "generated"),
            "RABBITMQ_SCHEMA_DIR": str(here / "schema"),
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
            "RABBITMQ_MAX_NUMBER_OF_PROCESSES": "131072",
            "RABBITMQ_MAX_NUMBER_OF_ATOMS": "1048576",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERL_ARGS,
            "RABBITMQ_CTL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _end(self, number: signal.Signals) -> None:
        if self._process:
            self._process.end(number)
        processes.forget(self._pid_file)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n") if self._log.exists() else []
        said = [line.strip() for line in lines if line.strip()]
        return f" ({said[-1]})" if said else ""


def _script(name: str) -> Path:
    path = erlang.rabbitmq_script(name)
    if path is None:
        raise Trouble(f"{name} is not installed: install the package rabbitmq-server")
    return path
