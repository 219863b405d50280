"""`just bench relay`: the central processor's forward hop on both lanes, beside those who do the same.

All move the same letters over the same broker in the same run, turn and turn about. The limit is
RabbitMQ's own shovel, which never leaves the broker (on a private node only: it is told by rabbitmqctl).
"""

from __future__ import annotations

import asyncio
import os

from benchmarks import node_amqplib, shovel
from benchmarks.rounds import Contender, against, broker, in_process, play
from deploy.local.rabbitmq import Node

LETTERS = int(os.environ.get("DLO_TEST_LETTERS", "20000"))
ROUNDS = int(os.environ.get("DLO_TEST_ROUNDS", "5"))
OF_SHOVEL, CPU = 0.8, 60.0


def contenders(url: str, node: Node | None) -> dict[str, Contender]:
    """Who takes part; the slow ones with fewer letters."""
    node_amqplib.install()
    few = max(LETTERS // 4, 1)
    found = {
        "wire": Contender(
            "the service, wire lane", in_process("benchmarks.office", url, "wire"), LETTERS
        ),
        "faststream": Contender(
            "the service, FastStream lane",
            in_process("benchmarks.office", url, "faststream"),
            few,
        ),
        "aio-pika": Contender(
            "bare aio-pika, uvloop", in_process("benchmarks.bare_aio_pika", url), few
        ),
        "amqplib": Contender("Node amqplib", in_process("benchmarks.node_amqplib", url), LETTERS),
    }
    if node is not None:
        limit = Contender(
            "RabbitMQ's shovel", lambda n: asyncio.run(shovel.relay(node, n)), LETTERS
        )
        found["shovel"] = limit
    return found


def main() -> None:
    """Play, and hold the figures against the goals."""
    with broker(shovel.PLUGIN) as (url, node):
        found = contenders(url, node)
        play(found, ROUNDS)
    ours = found["wire"]
    print("\nthe wire lane's rate over others', round by round:")
    print(f"  {against(ours, found['amqplib'])} of Node amqplib (goal: more than 1)")
    print(f"  {against(ours, found['faststream'])} of the FastStream lane")
    if "shovel" in found:
        print(f"  {against(ours, found['shovel'])} of the shovel (goal: {OF_SHOVEL})")
    print(f"  {ours.cpu:.0f} µs CPU a letter (goal: at most {CPU:.0f})")


if __name__ == "__main__":
    main()
