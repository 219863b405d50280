"""`just up`: the office on this machine, until somebody asks it to stop."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from deploy.local.bell import Bell, Stopped
from deploy.local.folder import claimed
from deploy.local.saying import say
from deploy.local.trouble import Trouble


def main() -> int:
    """Run until the bell rings; 0 then, 1 when something would not run."""
    bell = Bell()
    bell.listen()
    try:
        with claimed() as office, ExitStack() as started:
            # Imported only now: it takes a second, in which a Ctrl-C would be a traceback.
            from deploy.local.opening import open_office

            open_office(office, started, bell)
    except Stopped:
        say("stopped; letters and ledger are kept for the next time")
        return 0
    except Trouble as trouble:
        print(trouble, file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
