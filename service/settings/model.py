"""The settings of the service: every key, its kind and its default."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Literal, get_origin

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    SecretStr,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from service.core import duration
from service.core.route import ReturnTo, Route, RouteBook
from service.settings.alerts import Alerts
from service.settings.auth import Auth
from service.settings.event_bus import EventBus
from service.settings.freeflow import Freeflow
from service.settings.kdlq import Kdlq
from service.settings.kinds import (
    DatabaseUrl,
    Duration,
    MarksKey,
    RabbitUrl,
    Retries,
    RoutingKey,
    Size,
    between,
    sizes,
    spans,
)
from service.settings.ledger import Adopted, Ledger
from service.settings.nearest import did_you_mean
from service.settings.replay import Replay
from service.settings.section import Section
from service.settings.settlement import Settlement

FLOWS = ("dlq_processor", "freeflow", "settlement", "event_bus", "kdlq")

# What differs in production even where there is no settings.toml to say so.
PRODUCTION: Mapping[str, object] = {
    "flows": [
        "dlq_processor",
        "freeflow",
        "event_bus",
        "kdlq",
    ],  # settlement's bank is a simulated one until a real one is named
    "queues": {"type": "quorum"},
    "dlq_processor": {"drill": False},
}


class Rabbit(Section):
    """The broker."""

    url: RabbitUrl = SecretStr("amqp://guest:guest@127.0.0.1:5672/")
    publish_timeout: Annotated[Duration, spans("100ms", "10m")] = timedelta(seconds=10)
    heartbeat: Annotated[Duration, spans("1s", "1h")] = timedelta(seconds=10)
    reconnect: Annotated[Duration, spans("100ms", "10m")] = timedelta(seconds=2)


class Database(Section):
    """The ledger."""

    url: DatabaseUrl = SecretStr("sqlite+aiosqlite:///var/dlo.db")
    poll: Annotated[Duration, spans("10ms", "1h")] = timedelta(seconds=1)


class Queues(Section):
    """The queues we declare."""

    type: Literal["classic", "quorum"] = "classic"


class Marks(Section):
    """The headers we stamp."""

    key: MarksKey = None
    old_keys: tuple[MarksKey, ...] = ()


class Limits(Section):
    """The largest letter that is still retried."""

    max_body: Annotated[Size, sizes("1B", "512MiB")] = 4 * 1024 * 1024
    # RabbitMQ closes the connection over headers that pass a frame, 128 KiB.
    max_headers: Annotated[Size, sizes("1KiB", "128KiB")] = 64 * 1024


def _not_too_many(tiers: tuple[timedelta, ...]) -> tuple[timedelta, ...]:
    if not 1 <= len(tiers) <= 20:
        raise ValueError("a list of 1 to 20 durations")
    return tiers


Tier = Annotated[Duration, spans("1ms", "24h")]
Tiers = Annotated[tuple[Tier, ...], AfterValidator(_not_too_many)]


class DlqProcessor(Section):
    """The central clerk: retry-queue, delays, dlq-queue."""

    tiers: Tiers = (timedelta(seconds=10), timedelta(seconds=15), timedelta(seconds=20))
    max_retries: Retries = 3
    prefetch: Annotated[StrictInt, between(1, 65_535, str)] = 300
    lane: Literal["wire", "faststream"] = "wire"
    drill: StrictBool = True


class Web(Section):
    """Health, metrics, console."""

    host: Annotated[StrictStr, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[StrictInt, between(0, 65_535, str)] = 8000


class Log(Section):
    """What the service says."""

    level: Literal["debug", "info", "warning", "error", "critical"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class Shutdown(Section):
    """How the service ends."""

    grace: Annotated[Duration, spans("0s", "1h")] = timedelta(seconds=15)


def _a_tier(delay: timedelta, info: ValidationInfo) -> timedelta:
    tiers: tuple[timedelta, ...] = (info.context or {}).get("tiers", ())
    if tiers and delay not in tiers:
        raise ValueError(f"one of the tiers: {', '.join(map(duration.say, tiers))}")
    return delay


class RouteSetting(Section):
    """An entry of `[routes]`: a number of retries, or a table."""

    max_retries: Retries | None = None
    delays: tuple[Annotated[Duration, AfterValidator(_a_tier)], ...] = ()
    return_to: ReturnTo = ReturnTo.QUEUE

    @model_validator(mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("a number of retries, or a table like { max_retries = 2 }")
        return {"max_retries": value}


def _known_flow(name: str) -> str:
    if name not in FLOWS:
        raise ValueError(f"one of {', '.join(FLOWS)}{did_you_mean(name, FLOWS)}")
    return name


RouteTable = Annotated[
    Mapping[RoutingKey, RouteSetting], AfterValidator(MappingProxyType), PlainSerializer(dict)
]


class Settings(Section):
    """Everything the service is told, checked and frozen."""

    env: Literal["development", "production"] = "development"
    flows: tuple[Annotated[StrictStr, AfterValidator(_known_flow)], ...] = FLOWS
    rabbit: Rabbit = Field(default_factory=Rabbit)
    database: Database = Field(default_factory=Database)
    ledger: Ledger = Field(default_factory=Ledger)
    adopt: Adopted = ()
    replay: Replay = Field(default_factory=Replay)
    queues: Queues = Field(default_factory=Queues)
    marks: Marks = Field(default_factory=Marks)
    limits: Limits = Field(default_factory=Limits)
    dlq_processor: DlqProcessor = Field(default_factory=DlqProcessor)
    freeflow: Freeflow = Field(default_factory=Freeflow)
    settlement: Settlement = Field(default_factory=Settlement)
    event_bus: EventBus = Field(default_factory=EventBus)
    kdlq: Kdlq = Field(default_factory=Kdlq)
    alerts: Alerts = Field(default_factory=Alerts)
    web: Web = Field(default_factory=Web)
    auth: Auth = Field(default_factory=Auth)
    log: Log = Field(default_factory=Log)
    shutdown: Shutdown = Field(default_factory=Shutdown)
    routes: RouteTable = Field(default_factory=dict)

    def route_book(self) -> RouteBook:
        """`[routes]`, ready to be asked."""
        return RouteBook.of(
            Route(name, route.max_retries, route.delays, route.return_to)
            for name, route in self.routes.items()
        )


Path = tuple[str, ...]


def table_keys() -> frozenset[Path]:
    """The keys whose value is itself a table, with names of the user's own."""
    return frozenset(
        (*path, key)
        for path, kind in sections().items()
        for key, field in kind.model_fields.items()
        if get_origin(field.annotation) is Mapping
    )


def sections(inside: type[Section] = Settings, path: Path = ()) -> dict[Path, type[Section]]:
    """The tables with fixed keys, by where they stand: `[rabbit]`, `[settlement.bank]` …"""
    found: dict[Path, type[Section]] = {}
    for name, field in inside.model_fields.items():
        kind, here = field.annotation, (*path, name)
        if isinstance(kind, type) and issubclass(kind, Section):
            found |= {here: kind} | sections(kind, here)
    return found


def known_keys() -> frozenset[Path]:
    """Every key there is, but for the names of routes."""
    tables = sections()
    keys = {(*path, key) for path, kind in tables.items() for key in kind.model_fields}
    return frozenset(keys - tables.keys() | {("flows",), ("adopt",)})
