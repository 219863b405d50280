"""The kinds of value a setting can have: each says in a few words what it expects."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    SecretStr,
    StrictInt,
    StrictStr,
    ValidationInfo,
)

from service.core import duration
from service.settings import size

T = TypeVar("T")

SERVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
HANDLER = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}

DATABASE = "a URL like sqlite:///var/dlo.db or postgresql://user:password@host:5432/name"


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    try:
        return duration.parse(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError('a duration like "250ms", "30s" or "5m"') from None


def _size(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return size.parse(value if isinstance(value, str) else "")


def _rabbit_url(value: SecretStr) -> SecretStr:
    expected = "a URL like amqp://user:password@host:5672/vhost"
    try:
        parts = urlsplit(value.get_secret_value())
        _ = parts.port  # reading it is what checks it
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
        raise ValueError(expected)
    return value


def _database_url(value: SecretStr, info: ValidationInfo) -> SecretStr:
    """The URL with the driver we use, so that nobody after us has to know the other spellings."""
    scheme, _, rest = value.get_secret_value().partition("://")
    match DRIVERS.get(scheme):
        case "sqlite+aiosqlite" as driver:
            return SecretStr(f"{driver}:///{_sqlite_file(rest, info)}")
        case str() as driver if _is_place(rest):
            return SecretStr(f"{driver}://{rest}")
        case _:
            raise ValueError(DATABASE)


def _sqlite_file(rest: str, info: ValidationInfo) -> str:
    """`/var/dlo.db` after `sqlite://` is the relative `var/dlo.db`: from the root of the project."""
    slash, file = rest[:1], rest[1:].partition("?")[0]
    if slash and slash != "/":
        raise ValueError("three slashes before a relative file, as in sqlite:///var/dlo.db")
    if file in ("", ":memory:"):
        raise ValueError("a file: the routes must outlive the service and be seen by others")
    root: Path | None = (info.context or {}).get("root")
    return file if root is None else str(root / file)


def _is_place(rest: str) -> bool:
    """Whether a server can be read out of it; several hosts are the driver's to read."""
    try:
        parts = urlsplit(f"//{rest}")
        return "," in parts.netloc or parts.port != 0
    except ValueError:
        return False


def between(low: T, high: T, say: Callable[[T], str]) -> AfterValidator:
    """A value outside of the two is a fault that names both."""

    def check(value: T) -> T:
        if not low <= value <= high:  # type: ignore[operator]  # T is a number or a timedelta
            raise ValueError(f"{say(low)} to {say(high)}")
        return value

    return AfterValidator(check)


def spans(shortest: str, longest: str) -> AfterValidator:
    """A duration within these two."""
    return between(duration.parse(shortest), duration.parse(longest), duration.say)


def sizes(smallest: str, largest: str) -> AfterValidator:
    """A size within these two."""
    return between(size.parse(smallest), size.parse(largest), size.say)


def _marks_key(value: SecretStr | None) -> SecretStr | None:
    if value is None or not value.get_secret_value():
        return None  # TOML has no null: an empty key is none
    if len(value.get_secret_value()) < 16:
        raise ValueError("at least 16 characters")
    return value


def _endpoint(value: SecretStr | None) -> SecretStr | None:
    if value is None or not value.get_secret_value():
        return None
    expected = "a URL like http://orders.example:8080/events"
    try:
        parts = urlsplit(value.get_secret_value())
        _ = parts.port  # reading it is what checks it
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(expected)
    return value


def _service_name(name: str) -> str:
    """It becomes part of names that AMQP limits to 255 bytes; a dot would make two of them alike."""
    if not SERVICE.fullmatch(name):
        raise ValueError("a name like wms-cincout: letters, digits, _ and -, 100 at most")
    return name


def _handler_path(path: str) -> str:
    if path and not HANDLER.fullmatch(path):
        raise ValueError("a path like package.module:function")
    return path


def _http_url(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    try:
        parts = urlsplit(text)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        right = False
    if text and not right:
        raise ValueError("a URL like https://host/path, or nothing")
    return value


def _routing_key(name: str) -> str:
    if len(name.encode()) > 255:
        raise ValueError("a routing key or pattern of 255 bytes at most")
    return name


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Size = Annotated[int, BeforeValidator(_size)]
RabbitUrl = Annotated[SecretStr, AfterValidator(_rabbit_url)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
Retries = Annotated[StrictInt, between(-1, 2**31 - 1, str)]
MarksKey = Annotated[SecretStr | None, AfterValidator(_marks_key)]
HttpUrl = Annotated[SecretStr, AfterValidator(_http_url)]
RoutingKey = Annotated[str, AfterValidator(_routing_key)]
Endpoint = Annotated[SecretStr | None, AfterValidator(_endpoint)]
ServiceName = Annotated[StrictStr, AfterValidator(_service_name)]
HandlerPath = Annotated[StrictStr, AfterValidator(_handler_path)]
