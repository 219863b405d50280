"""The settings of replays: what holds for a job that does not say otherwise."""

from datetime import timedelta
from typing import Annotated

from pydantic import StrictInt

from service.settings.kinds import Duration, between, spans
from service.settings.section import Section


class Replay(Section):
    """Letters sent back."""

    rate: Annotated[float, between(0.01, 10_000.0, str)] = 50.0
    canary: Annotated[StrictInt, between(0, 1_000, str)] = 1
    stop_percent: Annotated[float, between(0.0, 100.0, str)] = 10.0
    watch: Annotated[Duration, spans("100ms", "1d")] = timedelta(seconds=30)
    claim: Annotated[StrictInt, between(1, 500, str)] = 50
