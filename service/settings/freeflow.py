"""The settings of FreeFlow."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, StrictInt, StrictStr

from service.core import duration
from service.core.route import ReturnTo
from service.settings.kinds import Duration, Retries, between, spans
from service.settings.nearest import did_you_mean
from service.settings.section import Section

DOMAINS = ("user", "auth", "alarm", "document", "workflow", "notification", "audit")
TIERS = ("30s", "5m", "30m")


def _three_that_grow(tiers: Mapping[str, timedelta]) -> Mapping[str, timedelta]:
    """The names are the documented ones; the waits must tell the tiers apart."""
    expected = ", ".join(f'"{tier}"' for tier in TIERS)
    if set(tiers) != set(TIERS):
        raise ValueError(f"a wait for each of {expected}")
    waits = [tiers[name] for name in TIERS]
    if sorted(set(waits)) != waits:
        raise ValueError(f"waits that grow from tier to tier: {expected}")
    return MappingProxyType({name: tiers[name] for name in TIERS})


def _known_domain(name: str) -> str:
    if name not in DOMAINS:
        near = did_you_mean(name, DOMAINS)
        raise ValueError(f"one of the domains {', '.join(DOMAINS)}{near}")
    return name


Tiers = Annotated[
    Mapping[str, Annotated[Duration, spans("1ms", "24h")]],
    AfterValidator(_three_that_grow),
    PlainSerializer(dict),
]
Handlers = Annotated[
    Mapping[Annotated[StrictStr, AfterValidator(_known_domain)], StrictStr],
    AfterValidator(MappingProxyType),
    PlainSerializer(dict),
]


class Freeflow(Section):
    """The events of seven domains: retry queues of three tiers, freeflow.events.dlq."""

    tiers: Tiers = Field(default_factory=lambda: {name: duration.parse(name) for name in TIERS})
    max_retries: Retries = 3
    return_to: ReturnTo = ReturnTo.EXCHANGE
    handlers: Handlers = Field(default_factory=dict)
    prefetch: Annotated[StrictInt, between(1, 65_535, str)] = 20
