"""`just up`, really: started, refused a second time, killed, taken over, stopped without a trace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import needs, ports, processes
from deploy.local.folder import ROOT
from deploy.local.processes import wait_until
from deploy.local.rabbitmq import Node
from tests.servers.fixtures import demand
from tests.servers.leftovers import clear, new_folder

PARTS = ("service", "deploy", "migrations", "settings.toml")


class House:
    """A copy of the project, so that an office of the person at this machine is not disturbed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / ".dlo"
        self.port = ports.free_port()
        self.runs: list[subprocess.Popen[str]] = []

    def up(self, **settings: str) -> subprocess.Popen[str]:
        """Start an office from a folder that is not its own."""
        ours = {name: text for name, text in os.environ.items() if not name.startswith("DLO_")}
        place = {"PYTHONPATH": str(self.root), "DLO_WEB__PORT": str(self.port)}
        with self.log(len(self.runs)).open("w") as log:
            run = subprocess.Popen(
                [sys.executable, "-m", "deploy.local.up"],
                cwd="/",
                env=ours | place | settings,
                text=True,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.runs.append(run)
        return run

    def log(self, number: int) -> Path:
        return self.root / f"up-{number}.log"

    def said(self) -> str:
        return self.log(len(self.runs) - 1).read_text()

    def is_open(self) -> bool:
        return "Try it out: uv run dlo drill" in self.said()

    def process(self, note: str) -> processes.Process | None:
        return processes.recall(self.state / note)

    def processes(self) -> list[processes.Process | None]:
        notes = ("service.pid", "rabbitmq/node.pid", "rabbitmq/epmd.pid")
        return [self.process(note) for note in notes]

    def clear(self) -> None:
        for run in self.runs:
            run.kill()
            run.wait()
        clear(self.root)


@pytest.fixture
def house() -> Iterator[House]:
    demand(needs.RABBITMQ)
    folder = new_folder()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    house = House(folder)
    yield house
    house.clear()


def opened(house: House, run: subprocess.Popen[str]) -> str:
    """Wait for the banner, or fail with what was said instead."""
    wait_until(lambda: house.is_open() or run.poll() is not None, 60)
    assert house.is_open(), house.said()
    return house.said()


def test_the_life_of_an_office(house: House) -> None:
    first = house.up()
    link = f"http://127.0.0.1:{house.port}"
    said = opened(house, first)
    assert "Dead Letter Office" in said
    assert "SQLite var/dlo.db ✔" in said
    assert link in said
    assert "guest:guest" not in said
    assert (house.root / ".secrets.toml").stat().st_mode & 0o777 == 0o600
    with urllib.request.urlopen(f"{link}/readyz", timeout=5) as answer:
        assert answer.status == 200

    second = house.up()
    assert second.wait(30) == 1
    assert house.said().strip() == f"an office already runs in this folder: {link}"
    assert all(house.processes())

    first.kill()
    first.wait()
    left_node = house.process("rabbitmq/node.pid")
    left_service = house.process("service.pid")
    assert left_node
    assert left_service

    third = house.up()
    assert "taking over the RabbitMQ" in opened(house, third)
    assert house.process("rabbitmq/node.pid") == left_node
    assert not left_service.is_alive
    announced = json.loads((house.state / "office.json").read_text())
    assert announced == {"link": link, "rabbit_url": Node(house.state / "rabbitmq").url}

    started = [process for process in house.processes() if process]
    assert len(started) == 3
    third.send_signal(signal.SIGINT)
    assert third.wait(60) == 0, house.said()
    assert not [process for process in started if process.is_alive]
    assert not ports.answers(house.port)


def test_bad_settings_are_sentences_and_nothing_is_started(house: House) -> None:
    run = house.up(DLO_RABBIT__URI="amqp://127.0.0.1/", DLO_DATABASE__POLL="soon")
    assert run.wait(30) == 1
    assert "rabbit.uri" in house.said()
    assert "database.poll" in house.said()
    assert "Traceback" not in house.said()
    assert house.processes() == [None, None, None]
