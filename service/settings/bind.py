"""Where the service may listen: an address that others reach needs a door with a lock."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from service.core.loopback import is_loopback
from service.settings.faults import Fault, Path, origin_of
from service.settings.model import Settings

HOW = 'set auth.mode to "token" or "proxy", or listen on 127.0.0.1'
OTHER_DOORS = ("--uds", "--fd")


def bind_faults(settings: Settings | None, origins: Mapping[Path, str]) -> Iterator[Fault]:
    """What is wrong with the door, as the settings have it."""
    if settings is None:
        return
    if settings.auth.mode == "token" and not settings.auth.tokens:
        yield Fault("auth.tokens", "auth.mode is token and there is none: nobody could come in")
    if settings.auth.mode == "none" and not is_loopback(settings.web.host):
        wrong = f"{settings.web.host} lets other machines in and auth.mode is none: {HOW}"
        yield Fault("web.host", wrong, origin_of(("web", "host"), origins))


def command_faults(settings: Settings, arguments: Sequence[str]) -> Iterator[Fault]:
    """The same for the command that starts us: `--host` is not asked of the settings."""
    if settings.auth.mode != "none":
        return
    words = [word for argument in arguments for word in argument.split("=", 1)]
    for option, value in pairwise(words):
        if option in OTHER_DOORS or (option == "--host" and not is_loopback(value)):
            yield Fault(
                "auth.mode", f"is none, and {option} {value} may let other machines in: {HOW}"
            )
