"""What is wrong with the settings: every fault at once, each with its key and what was expected."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from service.settings.masking import HIDDEN, masked_url
from service.settings.nearest import did_you_mean

Path = tuple[str, ...]

URLS = frozenset({("rabbit", "url"), ("database", "url"), ("settlement", "bank", "url")})
SECRETS = frozenset({("marks", "key"), ("settlement", "alert_url")})
ROUTE = ("max_retries", "delays", "return_to")
SECRET_LISTS = frozenset({("marks", "old_keys"), ("auth", "tokens")})
TOKEN = ("name", "role", "token", "sha256")
SERVICE = ("name", "endpoint", "handler", "prefetch", "timeout", "refuse_client_errors")
WORDS = {
    "Input should be a valid boolean": "true or false",
    "Input should be a valid integer": "a whole number",
    "Input should be a valid tuple": "a list",
    "Input should be a valid dictionary": "a table",
    "Input should be a valid ": "a ",
    "Input should be ": "",
    "Value error, ": "",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One key and what is wrong with it."""

    key: str
    wrong: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.key}: {self.wrong}" + (f" (from {self.origin})" if self.origin else "")


class BadSettings(Exception):
    """The settings cannot be used; says all that is wrong, one line each."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


def unknown(path: Path, known: Iterable[Path], origin: str) -> Fault:
    """A key that does not exist. Its value is not shown: it may be a secret under a wrong name."""
    near = _near(path, frozenset(known))
    return Fault(dotted(path), f"there is no such setting{near}", origin)


def _near(path: Path, known: frozenset[Path]) -> str:
    """Among its neighbours first; then anywhere, for a key in the wrong table, or in none."""
    elsewhere = sorted(dotted(other) for other in known if other[-1] == path[-1])
    if whole := did_you_mean(dotted(path), map(dotted, known)) if len(path) > 1 else "":
        return whole
    if elsewhere:
        return f"; did you mean {' or '.join(elsewhere)}?"
    return did_you_mean(dotted(path), map(dotted, known))


def faults_of(error: ValidationError, origins: Mapping[Path, str]) -> list[Fault]:
    """What pydantic found, in our words."""
    return [_fault(found, origins) for found in error.errors()]


def _fault(found: ErrorDetails, origins: Mapping[Path, str]) -> Fault:
    path = tuple(str(part) for part in found["loc"] if part != "[key]")
    origin = origin_of(path, origins)
    if found["type"] == "extra_forbidden":
        keys = {"event_bus": SERVICE, "auth": TOKEN}.get(path[0], ROUTE)
        return unknown(path, ((*path[:-1], key) for key in keys), origin)
    if found["type"] == "missing":
        return Fault(dotted(path), "is missing", origin)
    given, expected = _shown(path, found["input"]), _plain(found["msg"])
    return Fault(dotted(path), f"given {given}, expected {expected}", origin)


def origin_of(path: Path, origins: Mapping[Path, str]) -> str:
    """The place that set a key, or the table it is in."""
    return next((origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in origins), "")


def _plain(message: str) -> str:
    start = next((start for start in WORDS if message.startswith(start)), "")
    if start.endswith("dictionary"):  # pydantic adds the name of our class
        return WORDS[start]
    return WORDS.get(start, "") + message.removeprefix(start)


def _shown(path: Path, given: object) -> str:
    if path in SECRETS:
        return HIDDEN
    if path in URLS or path[-1] == "endpoint":
        return masked_url(given) if isinstance(given, str) else type(given).__name__
    if isinstance(given, Mapping):  # the values may be secrets
        return f"a table with {', '.join(map(str, given)) or 'nothing'}"
    if isinstance(given, list) and any(isinstance(item, Mapping) for item in given):
        return f"a list of {len(given)}"
    if path[:2] in SECRET_LISTS and path[-1] != "role":
        return HIDDEN
    text = repr(given)
    return text if len(text) <= 80 else f"{text[:80]}…"


def dotted(path: Path) -> str:
    """A key as it is written in TOML; names of routes are quoted, for they have dots themselves."""
    return ".".join(part if part.replace("_", "").isalnum() else f'"{part}"' for part in path)
