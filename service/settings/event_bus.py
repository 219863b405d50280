"""The settings of the event bus."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, StrictBool, StrictInt, model_validator

from service.settings.kinds import (
    Duration,
    Endpoint,
    HandlerPath,
    Retries,
    ServiceName,
    between,
    spans,
)
from service.settings.section import Section


class ServiceSetting(Section):
    """An entry of `[[event_bus.services]]`."""

    name: ServiceName
    endpoint: Endpoint = None
    handler: HandlerPath = ""
    prefetch: Annotated[StrictInt, between(1, 65_535, str)] = 5
    timeout: Annotated[Duration, spans("10ms", "10m")] = timedelta(seconds=30)
    refuse_client_errors: StrictBool = False

    @model_validator(mode="after")
    def _one_door(self) -> Self:
        if (self.endpoint is None) == (not self.handler):
            raise ValueError("an endpoint or a handler, and not both")
        return self


def _told_apart(services: tuple[ServiceSetting, ...]) -> tuple[ServiceSetting, ...]:
    """The name makes the prefix and every queue: two of one name would share them."""
    names = [service.name for service in services]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"each service once; {', '.join(twice)} is there twice")
    return services


class EventBus(Section):
    """Events pushed to services: main-exchange, a queue, a retry queue and a dlq per service."""

    services: Annotated[tuple[ServiceSetting, ...], AfterValidator(_told_apart)] = ()
    max_retries: Retries = 10
    retry_after: Annotated[Duration, spans("1ms", "24h")] = timedelta(seconds=5)
