"""The project's folder, and the rule that one office at a time runs in it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from deploy.local import processes
from deploy.local.trouble import Trouble

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".dlo"


@dataclass(frozen=True, slots=True)
class Office:
    """The claim on the folder: while it is held, nobody else starts an office here."""

    state: Path
    claim: IO[str]

    def announce(self, link: str, broker: str = "") -> None:
        """Write down where the office and a broker of its own are found, for other programs."""
        self.claim.seek(0)
        self.claim.truncate()
        json.dump({"link": link, "rabbit_url": broker}, self.claim)
        self.claim.flush()

    @property
    def service_pid(self) -> Path:
        """Where the service's process is written down."""
        return self.state / "service.pid"

    def end_leftover(self) -> None:
        """End a service whose office was killed: it would hold the port and the ledger."""
        if service := processes.recall(self.service_pid):
            service.end(within=20)
        self.forget_service()

    def forget_service(self) -> None:
        """Strike out the service that has ended."""
        processes.forget(self.service_pid)


@contextmanager
def claimed(state: Path = STATE) -> Iterator[Office]:
    """Claim the folder, or Trouble with the link of the office that runs in it."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = state / "office.json"
    note.touch(mode=0o600)
    with note.open("a+") as claim:
        try:
            # The kernel lets go of it with the process, however that ends.
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Trouble(f"an office already runs in this folder{_where(claim)}") from None
        office = Office(state, claim)
        office.announce("")
        try:
            yield office
        finally:
            office.announce("")


def _where(claim: IO[str]) -> str:
    claim.seek(0)
    try:
        link = json.load(claim)["link"]
    except ValueError:
        link = ""
    return f": {link}" if link else ", and is just starting"
