"""The settings of alerts."""

from datetime import timedelta
from typing import Annotated

from pydantic import SecretStr, StrictInt

from service.settings.kinds import Duration, HttpUrl, between, spans
from service.settings.section import Section


class Alerts(Section):
    """Who is told of new causes, and when several are told together."""

    webhook: HttpUrl = SecretStr("")
    apprise: tuple[SecretStr, ...] = ()
    digest_after: Annotated[StrictInt, between(1, 1000, str)] = 5
    digest_window: Annotated[Duration, spans("1s", "24h")] = timedelta(minutes=10)
