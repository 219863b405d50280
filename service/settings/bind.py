"""Where the service may listen: an address that others reach needs a door with a lock."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from service.core.loopback import is_loopback
from service.settings.faults import Fault
from service.settings.model import Settings

HOW = 'set auth.mode to "token" or "proxy", or listen on 127.0.0.1'
OTHER_DOORS = ("--uds", "--fd")


def door_faults(settings: Settings | None) -> Iterator[Fault]:
    """A door that nobody could come in by."""
    if settings is not None and settings.auth.mode == "token" and not settings.auth.tokens:
        yield Fault("auth.tokens", "auth.mode is token and there is none: nobody could come in")


def bind_faults(settings: Settings, arguments: Sequence[str]) -> Iterator[Fault]:
    """A door without a lock, that others reach: the command that starts us says where we listen."""
    if settings.auth.mode != "none":
        return
    words = [word for argument in arguments for word in argument.split("=", 1)]
    for option, value in pairwise(words):
        if option in OTHER_DOORS or (option == "--host" and not is_loopback(value)):
            wrong = f"is none, and {option} {value} may let other machines in: {HOW}"
            yield Fault("auth.mode", wrong)
