"""`just bench relay`: the central processor's forward hop beside the same hop in bare aio-pika.

Both move the same letters over the same broker in the same run, turn and turn about; the machine is
noisy, so what counts is the ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.local.rabbitmq import Node

LETTERS = int(os.environ.get("DLO_TEST_LETTERS", "5000"))
ROUNDS = 5
GOAL = 0.75
CONTENDERS = {
    "bare aio-pika, uvloop, prefetch 100": "benchmarks.bare_aio_pika",
    "the service": "benchmarks.office",
}


def measure(module: str, url: str) -> dict[str, float]:
    """One round of one contender, in a process of its own."""
    command = [sys.executable, "-m", module, url, str(LETTERS)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def compare(url: str) -> None:
    """Rounds turn and turn about, then the medians."""
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for number in range(1, ROUNDS + 1):
        for name, module in CONTENDERS.items():
            rounds[name].append(measure(module, url))
            print(f"round {number}: {name}: {LETTERS / rounds[name][-1]['seconds']:.0f} letters/s")
    print(f"\nmedians of {ROUNDS} rounds, {LETTERS} letters of 1 KiB each:")
    for name, figures in rounds.items():
        rates = [LETTERS / figure["seconds"] for figure in figures]
        cpu = statistics.median(figure["cpu"] for figure in figures) / LETTERS * 1e6
        spread = f"{min(rates):.0f}–{max(rates):.0f}"
        print(
            f"  {name}: {statistics.median(rates):.0f} letters/s ({spread}), {cpu:.0f} µs CPU a letter"
        )
    peer, ours = (statistics.median(f["seconds"] for f in figures) for figures in rounds.values())
    print(f"  the service moves {peer / ours:.2f} of the bare loop (goal: {GOAL})")


def main() -> None:
    """On the broker that DLO_TEST_RABBIT_URL names, else on a private node."""
    if named := os.environ.get("DLO_TEST_RABBIT_URL"):
        return compare(named)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder) / "rabbitmq")
        node.start()
        try:
            compare(node.url)
        finally:
            node.stop()
    return None


if __name__ == "__main__":
    main()
