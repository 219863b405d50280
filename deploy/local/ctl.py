"""rabbitmqctl for the private node: `python -m deploy.local.ctl list_queues`."""

from __future__ import annotations

import sys

from deploy.local.folder import STATE
from deploy.local.rabbitmq import Node
from deploy.local.trouble import Trouble


def main() -> None:
    """Hand the words over, print the answer."""
    node = Node(STATE / "rabbitmq")
    if not node.is_running:
        sys.exit("the private node does not run; start it with: uv run just up")
    try:
        print(node.ctl(*sys.argv[1:]), end="")
    except Trouble as trouble:
        sys.exit(str(trouble))


if __name__ == "__main__":
    main()
