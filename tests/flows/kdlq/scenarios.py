"""One table of lives, played on the paper broker, on RabbitMQ and on Kafka with the same ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from service.core import marks as names
from service.core.policy import SPENT
from service.flows.kdlq.config import KDLQConfig
from service.flows.kdlq.message import Message
from service.flows.kdlq.status import MustBeRedelivered, Status

End = Status | Exception | None
OK, ERROR, AGAIN = Status.OK, Status.ERROR, Status.MUST_BE_REDELIVERED
PROCESSED, REDELIVERED = "on_processed", "on_redelivery_success"
KILLED, SKIPPED = "on_kill_success", "on_skip"
MARKER = "the handler"
SENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
SENT_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Scenario:
    """How a handler ends each delivery of one message (the last end repeats), and what is told of it."""

    name: str
    ends: tuple[End, ...]
    told: tuple[str, ...]
    dead: Mapping[str, object] | None = None
    """KDLQ's headers on what lies in the DLQ at the end, if anything does."""
    config: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, object] = field(default_factory=dict)
    body: bytes = b'{"order": 7}'
    asks: type = Message
    """What the handler's parameter is annotated with."""
    reprocessed: bool = False
    """Whether a second consumer, with the same handler, takes what is in the DLQ."""
    clumsy: bool = False
    """Whether a listener raises in every hook."""
    skipped: int = 0

    def rules(self, servers: str, place: str, *listeners: object) -> KDLQConfig:
        """The config, with names of its own for this scenario."""
        given = dict(self.config)
        if "redelivery" in given:
            given["redelivery"] = f"{place}.again"
        return KDLQConfig(
            servers=servers,
            dlq=f"{place}.dlq",
            skipped=f"{place}.skipped",
            marker=MARKER,
            listeners=(*listeners, *([Clumsy()] if self.clumsy else [])),
            **given,
        )


class Clumsy:
    """A listener that raises, whatever it is told."""

    def on_processed(self, *_: object) -> None:
        """Raise."""
        raise ValueError("clumsy")

    on_redelivery_success = on_kill_success = on_skip = on_processed


class Record:
    """A listener that writes down what it is told, and the handler that ends as it is told."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.told: list[str] = []
        self.seen: list[Message | object] = []

    async def on_processed(self, message: Message) -> None:
        """Async here, sync below: both are hooks."""
        self.told.append(PROCESSED)

    def on_redelivery_success(self, message: Message) -> None:
        """Written down."""
        self.told.append(REDELIVERED)

    def on_kill_success(self, message: Message) -> None:
        """Written down."""
        self.told.append(KILLED)

    def on_skip(self, message: Message, reason: str) -> None:
        """Written down."""
        assert "kills" in reason
        self.told.append(SKIPPED)

    @property
    def handler(self) -> Any:
        """A function that ends as the scenario says."""

        async def handle(message: object) -> Status | None:
            self.seen.append(message)
            ends = self.scenario.ends
            end = ends[min(len(self.seen), len(ends)) - 1]
            if isinstance(end, Exception):
                raise end
            return end

        handle.__annotations__["message"] = self.scenario.asks
        return handle


def marked(
    redelivered: int | None = None, kills: int | None = None, **more: object
) -> dict[str, object]:
    """What KDLQ writes on a copy."""
    counters = {names.REDELIVERED: redelivered, names.KILLS: kills}
    given = {name: count for name, count in counters.items() if count is not None}
    return {**given, names.MARKER: MARKER, **more}


BOOM = ValueError("boom")
LATER = MustBeRedelivered("not replicated yet")
ORIGINALS = {
    names.ORIG_OFFSET: 0,
    names.ORIG_PARTITION: 0,
    names.ORIG_TS: SENT_MS,
}

SCENARIOS = (
    Scenario("ok", (OK,), (PROCESSED,)),
    Scenario("nothing returned is ok", (None,), (PROCESSED,)),
    Scenario(
        "redelivered until it works", (AGAIN, LATER, OK), (REDELIVERED, REDELIVERED, PROCESSED)
    ),
    Scenario(
        "redelivered to a queue of its own",
        (LATER, OK),
        (REDELIVERED, PROCESSED),
        config={"redelivery": "yes"},
    ),
    Scenario(
        "no redelivery",
        (AGAIN,),
        (KILLED,),
        marked(kills=1),
        config={"max_redeliveries": 0},
    ),
    Scenario(
        "two redeliveries",
        (AGAIN,),
        (REDELIVERED, REDELIVERED, KILLED),
        marked(2, 1),
        config={"max_redeliveries": 2},
    ),
    Scenario(
        "redelivered without end",
        (*[AGAIN] * 8, OK),
        (*[REDELIVERED] * 8, PROCESSED),
        config={"max_redeliveries": -1},
    ),
    Scenario("an error", (ERROR,), (KILLED,), marked(kills=1)),
    Scenario("an exception", (BOOM,), (KILLED,), marked(kills=1)),
    Scenario(
        "an exception that means later",
        (BOOM, OK),
        (REDELIVERED, PROCESSED),
        config={"on_exception": "redeliver"},
    ),
    Scenario(
        "reprocessed from the DLQ with success",
        (ERROR, OK),
        (KILLED, PROCESSED),
        config={"max_kills": 1},
        reprocessed=True,
    ),
    Scenario(
        "reprocessed from the DLQ and skipped",
        (ERROR,),
        (KILLED, SKIPPED),
        config={"max_kills": 1},
        reprocessed=True,
        skipped=1,
    ),
    Scenario(
        "both limits spent",
        (AGAIN,),
        (REDELIVERED, KILLED, SKIPPED),
        config={"max_redeliveries": 1, "max_kills": 1},
        reprocessed=True,
        skipped=1,
    ),
    Scenario("no kill allowed", (ERROR,), (SKIPPED,), config={"max_kills": 0}, skipped=1),
    Scenario(
        "informational headers of the first hop",
        (AGAIN, AGAIN, ERROR),
        (REDELIVERED, REDELIVERED, KILLED),
        marked(2, 1, **ORIGINALS),
        config={"informational_headers": True},
    ),
    Scenario(
        "a malformed count of redeliveries is spent",
        (AGAIN,),
        (KILLED,),
        marked(SPENT, 1),
        config={"max_redeliveries": -1},
        headers={names.REDELIVERED: "many"},
    ),
    Scenario(
        "a malformed count of kills is spent",
        (ERROR,),
        (SKIPPED,),
        headers={names.KILLS: "-1"},
        skipped=1,
    ),
    Scenario(
        "malformed counts matter to failures only",
        (OK,),
        (PROCESSED,),
        headers={names.KILLS: "", names.REDELIVERED: "x"},
    ),
    Scenario(
        "hooks that raise",
        (AGAIN, ERROR),
        (REDELIVERED, KILLED, SKIPPED),
        config={"max_kills": 1},
        reprocessed=True,
        clumsy=True,
        skipped=1,
    ),
    Scenario(
        "a body that cannot be read", (OK,), (KILLED,), marked(kills=1), body=b"\xff{", asks=dict
    ),
    Scenario("a body that can", (OK,), (PROCESSED,), asks=dict),
)
