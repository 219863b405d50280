"""The settings of the ledger: what is taken in, and how long it is kept."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, StrictBool, StrictInt, StrictStr, model_validator

from service.settings.kinds import Duration, between, spans
from service.settings.section import Section


class Ledger(Section):
    """Dead letters in SQL."""

    intake: StrictBool = True
    prefetch: Annotated[StrictInt, between(1, 65_535, str)] = 2000
    batch: Annotated[StrictInt, between(1, 10_000, str)] = 500
    linger: Annotated[Duration, spans("0s", "10s")] = timedelta(milliseconds=50)
    retention: Annotated[Duration, spans("1s", "3650d")] = timedelta(days=30)
    keep_discarded: Annotated[Duration, spans("1s", "3650d")] = timedelta(days=7)
    edit: StrictBool = False

    @model_validator(mode="after")
    def _next_batch_gathers(self) -> Self:
        if self.prefetch < self.batch:
            raise ValueError("a prefetch that holds a batch, better two")
        return self


def _queue_name(name: str) -> str:
    if not name or len(name.encode()) > 255:
        raise ValueError("the name of a queue, 255 bytes at most")
    return name


class Adopt(Section):
    """An entry of `[[adopt]]`."""

    queue: Annotated[StrictStr, AfterValidator(_queue_name)]


def _each_once(adopted: tuple[Adopt, ...]) -> tuple[Adopt, ...]:
    names = [entry.queue for entry in adopted]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"each queue once; {', '.join(twice)} is there twice")
    return adopted


Adopted = Annotated[tuple[Adopt, ...], AfterValidator(_each_once)]
