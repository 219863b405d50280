"""`just bench intake`: dead letters through intake, beside a bare asyncpg insert of the same rows.

The same rows, the same table with its indexes and triggers, batches of the same size, in the same run,
turn and turn about; the machine is noisy, so what counts is the ratio.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.postgres import Server
from deploy.local.rabbitmq import Node
from service.ledger.schema import upgrade

LETTERS = int(os.environ.get("DLO_TEST_LETTERS", "40000"))
ROUNDS = 3
GOAL = 0.5
# As people run it: the servers of the tests do not wait for the disk.
DURABLE = {"fsync": "on", "full_page_writes": "on"}
Figures = dict[str, float]


def measure(module: str, *words: str) -> Figures:
    """One round of one contender, in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    figures: Figures = json.loads(done.stdout)
    return figures


def compare(url: str, postgres: Server, folder: Path) -> None:
    """Rounds turn and turn about, then the medians."""
    rounds: dict[str, list[Figures]] = {}
    for number in range(1, ROUNDS + 1):
        ledger, file = postgres.create_database(f"bench_{number}"), folder / f"{number}.db"
        sqlite = f"sqlite+aiosqlite:///{file}"
        for each in (ledger, sqlite):
            asyncio.run(upgrade(each))
        turns = (
            ("intake, PostgreSQL", "intake_office", url, ledger, str(LETTERS)),
            ("bare asyncpg, executemany", "bare_asyncpg", ledger, "executemany"),
            ("bare asyncpg, unnest", "bare_asyncpg", ledger, "unnest"),
            ("intake, SQLite", "intake_office", url, sqlite, str(LETTERS)),
        )
        for name, module, *words in turns:
            figures = measure(module, *words)
            rounds.setdefault(name, []).append(figures)
            print(f"round {number}: {name}: {LETTERS / figures['seconds']:.0f} letters/s")
    report(rounds)


def report(rounds: dict[str, list[Figures]]) -> None:
    """Medians, and what part of each bare insert intake reaches; the faster one is the goal."""
    print(f"\nmedians of {ROUNDS} rounds, {LETTERS} letters of 1 KiB each:")
    rates = {}
    for name, figures in rounds.items():
        rates[name] = statistics.median(LETTERS / figure["seconds"] for figure in figures)
        cpu = statistics.median(figure["cpu"] for figure in figures) / LETTERS * 1e6
        print(f"  {name}: {rates[name]:.0f} letters/s, {cpu:.0f} µs CPU a letter")
    ours = rates["intake, PostgreSQL"]
    bare = {name: rate for name, rate in rates.items() if name.startswith("bare")}
    for name, rate in bare.items():
        print(f"  intake reaches {ours / rate:.2f} of {name}")
    print(f"  {ours / max(bare.values()):.2f} of the faster one (goal: {GOAL})")


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The broker that DLO_TEST_RABBIT_URL names, else a private node."""
    if named := os.environ.get("DLO_TEST_RABBIT_URL"):
        yield named
        return
    node = Node(folder / "rabbitmq")
    node.start()
    try:
        yield node.url
    finally:
        node.stop()


def main() -> None:
    """On private servers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as somebody else where we are root
        postgres = Server(folder / "postgres", DURABLE)
        with broker(folder) as url:
            postgres.start()
            try:
                compare(url, postgres, folder)
            finally:
                postgres.stop()


if __name__ == "__main__":
    main()
