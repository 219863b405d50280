"""Opening the office on this machine: RabbitMQ, then the ledger, then the service."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from deploy.local import needs, ports, secret_key
from deploy.local.bell import Bell
from deploy.local.folder import ROOT, Office
from deploy.local.handshake import greet_url
from deploy.local.install import ensure
from deploy.local.rabbitmq import START_DEADLINE, Node
from deploy.local.saying import say
from deploy.local.served import Served, serve
from deploy.local.trouble import Trouble
from deploy.local.wanted import Wanted, wanted, without_password
from service.ledger import schema
from service.ledger.away import LedgerAway
from service.ledger.reaching import place

READY_DEADLINE = 60.0
FOREVER = float("inf")


def open_office(office: Office, started: ExitStack, bell: Bell) -> None:
    """Start everything in order; whatever is started goes onto the stack that stops it."""
    office.end_leftover()
    if secret_key.keep(ROOT / ".secrets.toml"):
        say("made .secrets.toml with a key that signs our marks")
    plan = wanted(ROOT, os.environ)
    node = None if plan.broker else private_node(office.state / "rabbitmq", started)
    broker = plan.broker or (node.url if node else "")
    env = {"DLO_RABBIT__URL": broker}
    migrate(plan.database)
    if node:
        await_node(node, bell)
    served = start_service(plan, env, office, started)
    office.announce(served.link, node.url if node else "")
    await_ready(served, bell)
    print_banner(served, broker, plan)
    watch(served, node, bell)


def private_node(folder: Path, started: ExitStack) -> Node:
    """Start a RabbitMQ of our own, which is not ready yet."""
    ensure([needs.RABBITMQ], say)
    node = Node(folder)
    say("taking over the RabbitMQ a killed run left" if node.is_running else "starting RabbitMQ")
    started.callback(node.stop)
    node.launch()
    return node


def migrate(url: str) -> None:
    """Bring the ledger's tables up to date."""
    try:
        asyncio.run(schema.upgrade(url))
    except LedgerAway as away:
        raise Trouble(str(away)) from None


def await_node(node: Node, bell: Bell) -> None:
    """Wait for the node to greet."""
    bell.wait_until(lambda: not node.is_running or node.greeting() is not None, START_DEADLINE)
    node.wait(within=0)


def start_service(plan: Wanted, env: dict[str, str], office: Office, started: ExitStack) -> Served:
    """Start the service on the wanted port, or on the next free one."""
    port = ports.first_free(plan.port or 8000)
    if port != plan.port:
        say(f"port {plan.port} is taken by another program: using {port}")
    served = serve(ROOT, plan.host, port, env, office.service_pid)
    started.callback(office.forget_service)
    started.callback(served.end, plan.grace + 5)
    started.callback(say, "stopping")
    return served


def await_ready(served: Served, bell: Bell) -> None:
    """Wait until the service is ready; when that takes long, say what it waits for, once."""
    if not bell.wait_until(lambda: is_decided(served), READY_DEADLINE):
        say(f"not ready yet, still trying: {served.link}/readyz says {served.readiness().words}")
        bell.wait_until(lambda: is_decided(served), FOREVER)
    if not served.is_running:
        raise Trouble(f"the service ended while it started (exit {served.child.returncode})")


def is_decided(served: Served) -> bool:
    """Whether the service is ready, or never will be."""
    return not served.is_running or served.readiness().is_ready


def print_banner(served: Served, broker: str, plan: Wanted) -> None:
    """Say what runs and where."""
    greeting = greet_url(broker)
    database = place(plan.database).replace(f"{ROOT}/", "")
    say(
        f"\nDead Letter Office {version('dead-letter-office')}"
        f" · {greeting or 'RabbitMQ'} ✔ · {database} ✔\n"
        f"  API       {served.link}/api/openapi.json\n"
        f"  AsyncAPI  {served.link}/asyncapi.json\n"
        f"  health    {served.link}/readyz\n"
        f"  metrics   {served.link}/metrics\n"
        f"  RabbitMQ  {without_password(broker)}\n"
        "See what lies here: uv run dlo status. Try it out: uv run dlo drill\n"
        "Ctrl-C stops what was started here and nothing else.\n"
    )


def watch(served: Served, node: Node | None, bell: Bell) -> None:
    """Stay until the bell rings or the service ends; a node that died is started again."""
    while served.is_running:
        bell.wait_until(lambda: not served.is_running or not is_up(node), FOREVER)
        if node and not is_up(node):
            say("our RabbitMQ has ended unexpectedly: starting it again")
            node.launch()
            time.sleep(1)  # one that cannot start is tried once a second, not without pause
    raise Trouble(
        f"the service ended by itself (exit {served.child.returncode}): stopping the rest"
    )


def is_up(node: Node | None) -> bool:
    """Whether the node runs, where there is one of ours."""
    return node is None or node.is_running
