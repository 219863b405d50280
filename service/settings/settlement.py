"""The settings of settlement."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, SecretStr, StrictInt, StrictStr

from service.settings.kinds import Duration, HttpUrl, between, spans
from service.settings.section import Section

Accounts = tuple[StrictStr, ...]


class Bank(Section):
    """Who settles: a real bank by its URL, or a simulated one that fails as it is told."""

    url: HttpUrl = SecretStr("")
    timeout: Annotated[Duration, spans("10ms", "10m")] = timedelta(seconds=10)
    fail: Accounts = ("FAIL",)
    flaky: Accounts = ("FLAKY",)
    flaky_failures: Annotated[StrictInt, between(1, 1000, str)] = 2
    slow: Accounts = ("SLOW",)
    slowness: Annotated[Duration, spans("0s", "10m")] = timedelta(seconds=5)
    failure_rate: Annotated[float, between(0.0, 1.0, str)] = 0.0


class Settlement(Section):
    """The payment story: transactions, their settlement, and the dead letters of both."""

    max_retries: Annotated[StrictInt, between(0, 1000, str)] = 3
    ttl: Annotated[Duration, spans("0s", "24d")] = timedelta(minutes=5)
    alert_url: HttpUrl = SecretStr("")
    bank: Bank = Field(default_factory=Bank)
