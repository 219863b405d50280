"""What `up` is going to run, read from the settings before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from deploy.local.trouble import Trouble
from service.settings import BadSettings, Settings, load
from service.settings.model import Rabbit
from service.settings.sources import gather


@dataclass(frozen=True, slots=True)
class Wanted:
    """The broker the user named, if any, the database, and the place of the web."""

    broker: str | None
    database: str
    host: str
    port: int
    grace: float


def wanted(root: Path, environ: Mapping[str, str]) -> Wanted:
    """Read the settings; every fault of theirs at once."""
    try:
        settings = load(root, environ)
    except BadSettings as faults:
        raise Trouble(str(faults)) from None
    return Wanted(
        named_broker(root, environ, settings),
        settings.database.url.get_secret_value(),
        settings.web.host,
        settings.web.port,
        settings.shutdown.grace.total_seconds(),
    )


def named_broker(root: Path, environ: Mapping[str, str], settings: Settings) -> str | None:
    """The RabbitMQ somebody chose; the default written out in settings.toml is nobody's choice."""
    url = settings.rabbit.url.get_secret_value()
    origin = gather(root, environ).origins.get(("rabbit", "url"), "settings.toml")
    is_default = url == Rabbit().url.get_secret_value()
    return None if is_default and origin.startswith("settings.toml") else url


def without_password(url: str) -> str:
    """A URL that may be shown."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    user = parts.username
    return urlunsplit(parts._replace(netloc=f"{user}@{place}" if user else place))
