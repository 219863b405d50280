"""The service, and a point in its code at which it kills itself, as a `kill -9` there would.

`python -m tests.crash.dies_at judged 40 --host … --port …`: at the fortieth pass through that point.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from service.edge import carry_out, reading
from service.edge.confirming import ConfirmingChannel
from service.edge.opening import Opening
from service.edge.wire.confirmed import Confirmed
from service.edge.wire.connection import Connection
from service.edge.wire.window import Window
from service.flows import desk, wire_desk
from service.ledger import schema
from service.ledger.routes import Routes
from tests.crash.running import run
from tests.kit.lanes import LANE

# Class and method, as they stand in the frames.
BASIC_PUBLISH, BASIC_ACK = b"\x00\x3c\x00\x28", b"\x00\x3c\x00\x50"


@dataclass
class Fuse:
    """Burns one pass shorter each time; at its end the process is gone."""

    passes: int

    def burn(self, *_: object) -> None:
        """One more pass."""
        self.passes -= 1
        if self.passes == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str) -> Callable[[Fuse], None]:
    """Die when this function is entered."""

    def lay(fuse: Fuse) -> None:
        original = getattr(owner, name)

        @wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            fuse.burn()
            return original(*args, **kwargs)

        setattr(owner, name, wrapper)

    return lay


def after(owner: Any, name: str) -> Callable[[Fuse], None]:
    """Die when this function has done its work."""

    def lay(fuse: Fuse) -> None:
        original = getattr(owner, name)

        @wraps(original)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            answer = await original(*args, **kwargs)
            fuse.burn()
            return answer

        @wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            answer = original(*args, **kwargs)
            fuse.burn()
            return answer

        setattr(owner, name, awaited if inspect.iscoroutinefunction(original) else called)

    return lay


def written(method: bytes) -> Callable[[Fuse], None]:
    """Die when such a frame was handed to the socket: uvloop does that at the end of its turn."""

    def lay(fuse: Fuse) -> None:
        original = asyncio.StreamWriter.write

        def write(self: asyncio.StreamWriter, data: bytes) -> None:
            original(self, data)
            if method in data:
                asyncio.get_running_loop().call_soon(fuse.burn)

        asyncio.StreamWriter.write = write  # type: ignore[method-assign,assignment]

    return lay


def wired(method: bytes) -> Callable[[Fuse], None]:
    """The same on the wire lane."""

    def lay(fuse: Fuse) -> None:
        original = Connection.flush

        def flush(self: Connection) -> None:
            has_it = method in b"".join(self._out)
            original(self)
            if has_it:
                self.loop.call_soon(fuse.burn)

        Connection.flush = flush  # type: ignore[method-assign]

    return lay


FASTSTREAM = {
    "delivered": before(reading, "envelope_of"),
    "judged": after(desk, "judge"),
    "published": written(BASIC_PUBLISH),
    "confirmed": after(ConfirmingChannel, "_on_confirm_frame"),
    "before_ack": before(carry_out, "settle"),
    "ack_sent": written(BASIC_ACK),
}
WIRE = {
    "delivered": before(wire_desk.WireDesk, "attend"),
    "judged": after(wire_desk, "judge"),
    "published": wired(BASIC_PUBLISH),
    "confirmed": after(Confirmed, "on_settled"),
    "before_ack": before(Window, "finish"),
    "ack_sent": wired(BASIC_ACK),
}
POINTS: dict[str, Callable[[Fuse], None]] = {
    **(FASTSTREAM if os.environ.get(LANE) == "faststream" else WIRE),
    "ledger_migrated": before(schema, "_current"),  # before the commit
    "routes_read": before(Routes, "_take"),
    "leaving": after(Opening, "stop_intake"),
}


if __name__ == "__main__":
    point, passes, *options = sys.argv[1:]
    POINTS[point](Fuse(int(passes)))
    run(*options)
