"""The event bus in the AsyncAPI document: every queue of every service, and letters as they look."""

from __future__ import annotations

from typing import Any

import pytest

from service.core import marks
from service.edge.pages import Kind
from service.flows.event_bus import messages
from service.rooms import rooms_of
from service.settings import Settings
from service.topology.tables import Topology
from tests.asyncapi.conftest import written

SETTINGS = Settings.model_validate(
    {
        "flows": ["event_bus"],
        "event_bus": {
            "services": [
                {"name": "wms-cincout", "endpoint": "http://u:hunter2@inside:8080/events"},
                {"name": "wms-stock", "handler": "tests.flows.event_bus.test_doors:take"},
            ]
        },
    }
)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of a service with two services on the bus."""
    return written(SETTINGS)


@pytest.fixture(scope="module")
def topology() -> Topology:
    """What it declares."""
    (room,) = rooms_of(SETTINGS, lambda _key: None)
    return room.topology


def test_every_queue_appears_with_its_arguments_and_bindings(
    document: dict[str, Any], topology: Topology
) -> None:
    channels = [c for name, c in document["channels"].items() if name != "dlo.receipts"]
    said = {channel["x-queue"]: channel["x-queue-arguments"] for channel in channels}
    assert said == {queue.name: dict(queue.arguments) for queue in topology.queues}
    bindings = {
        (row["exchange"], channel["x-queue"], row["key"])
        for channel in channels
        for row in channel["x-queue-bindings"]
    }
    assert bindings == {(b.exchange.name, b.queue.name, b.key) for b in topology.bindings}


def test_what_is_received_and_what_is_sent(document: dict[str, Any]) -> None:
    rooms = (("receive", "queue"), ("send", "retry-queue"), ("send", "dlq"))
    bus = [
        f"{action}-wms.{room}.{service}"
        for service in ("wms-cincout", "wms-stock")
        for action, room in rooms
    ]
    assert [*document["operations"]] == [*bus, "receive-dlo.receipts"]


def test_every_final_mark_is_described_and_nothing_of_the_inside_is_said(
    document: dict[str, Any],
) -> None:
    described = document["components"]["schemas"]["BusDeadHeaders"]["properties"]
    assert {marks.FINAL_STATUS, marks.FINAL_ERROR, marks.FINAL_RETRIES} <= described.keys()
    assert "inside" not in str(document)
    assert "{" not in "".join(document["channels"])


@pytest.mark.parametrize(
    "kind", [messages.EVENT, messages.WAITING, messages.DEAD], ids=lambda kind: kind.name
)
def test_the_examples_are_letters_of_their_kind(kind: Kind) -> None:
    assert kind.examples
    for example in kind.examples:
        assert kind.headers.model_validate(dict(example.headers)).model_dump(
            by_alias=True, exclude_none=True, mode="json"
        ) == dict(example.headers)
