"""The service's own command line, run in this process, which a test has changed before."""

from __future__ import annotations

import sys

from faststream._internal.cli.main import cli


def run(*words: str) -> None:
    """What `faststream run service.app:app` does, with the same options."""
    sys.argv = ["faststream", "run", "service.app:app", *words]
    cli()
