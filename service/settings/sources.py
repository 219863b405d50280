"""Where settings come from: `settings.toml`, `.secrets.toml`, `DLO_*`, merged by dynaconf."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dynaconf import Dynaconf  # type: ignore[import-untyped]  # it ships no types
from dynaconf.utils.parse_conf import (  # type: ignore[import-untyped]  # it ships no types
    DynaconfFormatError,
    DynaconfParseError,
    boolean_fix,
    parse_conf_data,
)

from service.settings import faults
from service.settings.faults import Fault
from service.settings.model import PRODUCTION, known_keys, sections, table_keys

Tree = Mapping[str, object]

FILES = ("settings.toml", ".secrets.toml")
ENVIRONMENTS = ("development", "production")
PREFIX = "DLO_"
MISSING = object()
NOT_SETTINGS = frozenset({"DLO_ENV", "DLO_URL", "DLO_TOKEN"})


@dataclass(frozen=True, slots=True)
class Layer:
    """Values from one place; a later layer wins."""

    origin: str
    values: tuple[tuple[faults.Path, object], ...]


@dataclass(slots=True)
class Gathered:
    """All values given, merged; where each came from; what was wrong already."""

    values: dict[str, object] = field(default_factory=dict)
    origins: dict[faults.Path, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def gather(root: Path, environ: Mapping[str, str]) -> Gathered:
    """Read every source and merge them, the environment last."""
    gathered = Gathered()
    env = environ.get("DLO_ENV") or "development"
    layers = [Layer("production", tuple(_leaves(PRODUCTION)))] if env == "production" else []
    for name in FILES:
        layers += _file_layers(root / name, env, gathered)
    _merge([*layers, *_variables(environ)], gathered)
    gathered.values["env"] = env
    gathered.origins["env",] = "DLO_ENV"
    return gathered


def _file_layers(path: Path, env: str, gathered: Gathered) -> list[Layer]:
    """The file's plain tables, then the environment's: `[production.queues]` over `[queues]`."""
    tree = _toml(path, gathered)
    plain = {key: value for key, value in tree.items() if key not in ENVIRONMENTS}
    special = tree.get(env, {}) if env in ENVIRONMENTS else {}
    if not isinstance(special, dict):
        gathered.faults.append(Fault(env, f"expected tables like [{env}.queues]", path.name))
        special = {}
    return [
        Layer(path.name, tuple(_leaves(plain))),
        Layer(f"{path.name} [{env}]", tuple(_leaves(special))),
    ]


def _toml(path: Path, gathered: Gathered) -> Tree:
    """The file as it is spelt: dynaconf's own reader would fold the case of the names of routes."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        gathered.faults.append(Fault(path.name, f"cannot be read: {error.strerror}"))
    except ValueError as error:  # not TOML, or not UTF-8
        gathered.faults.append(Fault(path.name, f"is not valid TOML: {error}"))
    return {}


def _variables(environ: Mapping[str, str]) -> Iterator[Layer]:
    """One layer per variable, so that a fault names its own; an empty one counts as unset."""
    for name, text in sorted(environ.items()):
        if _is_setting(name) and text:
            path = tuple(name.removeprefix(PREFIX).lower().split("__"))
            yield Layer(name, tuple(_leaves(_parsed(path, text), path)))


def _is_setting(name: str) -> bool:
    return name.startswith(PREFIX) and not name.startswith("DLO_TEST_") and name not in NOT_SETTINGS


def _parsed(path: faults.Path, text: str) -> object:
    """A value as dynaconf reads it, TOML where it is TOML; a secret as it is, were it 1e9."""
    if path in faults.URLS | faults.SECRETS:
        return text
    if path == ("routes",):
        return _inline_table(text)
    try:
        return parse_conf_data(boolean_fix(text), tomlfy=True)
    except (DynaconfParseError, DynaconfFormatError):
        return text


def _inline_table(text: str) -> object:
    """`{ "order.created" = 2 }`, the names as they are spelt."""
    try:
        return tomllib.loads(f"routes = {text}")["routes"]
    except ValueError:
        return text


def _leaves(value: object, path: faults.Path = ()) -> Iterator[tuple[faults.Path, object]]:
    """Every key with its value; a route is one value, whatever its name looks like, and so is a
    setting that is a table."""
    empty = not value and path and not _is_table(path)
    if not isinstance(value, Mapping) or empty or _is_route(path) or path in table_keys():
        yield path, value
    else:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))


def _is_route(path: faults.Path) -> bool:
    return len(path) == 2 and path[0] == "routes"


def _is_table(path: faults.Path) -> bool:
    return path == ("routes",) or path in sections()


def _merge(layers: Iterable[Layer], gathered: Gathered) -> None:
    """Lists are replaced, never joined: a key is set as a whole."""
    box = Dynaconf(settings_files=[], loaders=[], core_loaders=[], environments=False)
    routes: dict[str, object] = {}
    for layer in layers:
        for path, value in layer.values:
            gathered.origins[path] = layer.origin
            if _is_route(path):
                routes[path[1]] = value
            elif (
                fault := _misplaced(path, layer.origin) or _set(box, path, value, layer.origin)
            ) is not None:
                gathered.faults.append(fault)
    gathered.values = {**_tree(box), "routes": routes}


def _misplaced(path: faults.Path, origin: str) -> Fault | None:
    """Why a value cannot stand at this key."""
    if path in known_keys():
        return None
    if _is_table(path):
        return Fault(
            faults.dotted(path), "expected a table of settings, given a single value", origin
        )
    if path[0] == "env":
        return Fault("env", "is chosen by the variable DLO_ENV, not in a file", origin)
    if path[0] == "default":
        return Fault(
            faults.dotted(path), "defaults have no table of their own: leave out 'default'", origin
        )
    return faults.unknown(path, known_keys(), origin)


def _set(box: Dynaconf, path: faults.Path, value: object, origin: str) -> Fault | None:
    """dynaconf evaluates strings like `@int 5`; what it cannot evaluate is a fault."""
    try:
        box.set("__".join(path), value)
        box.get(".".join(path))
    except (DynaconfParseError, DynaconfFormatError):
        return Fault(faults.dotted(path), "has a value with an @ token that cannot be read", origin)
    return None


def _tree(box: Dynaconf) -> dict[str, object]:
    """What dynaconf holds, by section; a section nobody mentioned is an empty table."""
    tree: dict[str, object] = {}
    for path in sections():
        _table(tree, path)
    for path in sorted(known_keys()):
        if (value := box.get(".".join(path), MISSING)) is not MISSING:
            _table(tree, path[:-1])[path[-1]] = value
    return tree


def _table(tree: dict[str, object], path: faults.Path) -> dict[str, object]:
    for name in path:
        inner = tree.setdefault(name, {})
        assert isinstance(inner, dict)  # only tables stand where tables do
        tree = inner
    return tree
