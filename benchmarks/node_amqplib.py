"""A peer: Node's amqplib, installed from npm under `.dlo/` when it is first asked for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.hop import hop
from benchmarks.letters import PREFETCH

LIBRARY = "amqplib@2.3.1"
SCRIPT = Path(__file__).with_name("amqplib.mjs")
FOLDER = Path(__file__).resolve().parents[1] / ".dlo" / "npm-amqplib"


def install() -> None:
    """Once."""
    if (FOLDER / "node_modules" / "amqplib").exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    quiet = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    subprocess.run(["npm", "install", "--prefix", str(FOLDER), *quiet, LIBRARY], check=True)


async def relay(url: str, count: int) -> dict[str, float]:
    """Fill the queue, let Node empty it."""
    async with hop(url, count):
        command = ("node", str(SCRIPT), str(FOLDER), url.rstrip("/"), str(count), str(PREFETCH))
        node = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        said, _ = await node.communicate()
        assert node.returncode == 0
        figures: dict[str, float] = json.loads(said)
        return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(relay(sys.argv[1], int(sys.argv[2])))))
