"""The service, as its settings say: `faststream run service.app:app`."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from types import FrameType

from service import logs
from service.composition import Office, create, quiet_collector
from service.rooms import handler_faults
from service.settings import BadSettings, load
from service.settings.bind import bind_faults


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """uvicorn raises the signal again after its shutdown: by then everything is done, so exit 0."""
    sys.exit(0)


def _from_settings() -> Office:
    try:
        settings = load(also=handler_faults)
        if faults := list(bind_faults(settings, sys.argv[1:])):
            raise BadSettings(faults)
        logs.configure(settings.log.level, settings.log.format)
        office = create(settings)
    except BadSettings as bad:
        print(bad, file=sys.stderr)
        sys.exit(2)
    with suppress(ValueError):  # not the main thread: then the signals are somebody else's
        for end in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(end) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(end, _leave)
    quiet_collector()
    return office


app = _from_settings()
