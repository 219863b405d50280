"""`[[event_bus.services]]`: every fault with its key, and no password in any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.rooms import rooms_of
from service.settings import BadSettings, Settings, load, shown
from tests.kit.fixtures import sqlite_in
from tests.kit.process import Service, environment

FILE = """
[[event_bus.services]]
name = "wms-cincout"
endpoint = "https://clerk:hunter2@cincout.example/events"
refuse_client_errors = true

[[event_bus.services]]
name = "noprefix"
handler = "tests.flows.event_bus.test_doors:take"
prefetch = 20
timeout = "2s"
"""


def test_services_are_read_from_the_file_and_shown_without_passwords(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(FILE)
    settings = load(tmp_path, {})
    cincout, noprefix = settings.event_bus.services
    assert (cincout.prefetch, cincout.refuse_client_errors) == (5, True)
    assert (noprefix.handler, noprefix.endpoint) == ("tests.flows.event_bus.test_doors:take", None)
    assert "https://clerk:***@cincout.example/events" in repr(shown(settings))
    for text in (repr(settings), repr(shown(settings)), settings.model_dump_json()):
        assert "hunter2" not in text


def test_the_room_declares_what_its_services_need(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(FILE)
    (room,) = rooms_of(load(tmp_path, {"DLO_FLOWS": '["event_bus"]'}), lambda _key: None)
    assert [queue.name for queue in room.topology.queues] == [
        *("wms.queue.wms-cincout", "wms.retry-queue.wms-cincout", "wms.dlq.wms-cincout"),
        *("default.queue.noprefix", "default.retry-queue.noprefix", "default.dlq.noprefix"),
    ]


def test_without_services_the_room_is_empty() -> None:
    rooms = rooms_of(Settings(), lambda _key: None)
    assert {room.name: len(room.topology.queues) for room in rooms}["event_bus"] == 0


@pytest.mark.parametrize(
    ("services", "line"),
    [
        (
            '{name="a-b", endpoint="ftp://u:hunter2@x"}',
            "event_bus.services.0.endpoint: given ftp://u:***@x, expected a URL like "
            "http://orders.example:8080/events",
        ),
        (
            '{name="a-b"}',
            "event_bus.services.0: given a table with name, expected an endpoint or a handler, "
            "and not both",
        ),
        (
            '{name="a-b", handler="x:y", endpoint="http://u:hunter2@x"}',
            "event_bus.services.0: given a table with name, handler, endpoint, expected an endpoint "
            "or a handler, and not both",
        ),
        (
            '{name="a-b", handler="x:y", prefetsh=1}',
            "event_bus.services.0.prefetsh: there is no such setting; did you mean "
            "event_bus.services.0.prefetch?",
        ),
        ('{handler="x:y"}', "event_bus.services.0.name: is missing"),
        (
            '{name="a-b", handler="no colon"}',
            "event_bus.services.0.handler: given 'no colon', expected a path like "
            "package.module:function",
        ),
        (
            '{name="a.b", handler="x:y"}',
            "event_bus.services.0.name: given 'a.b', expected a name like wms-cincout: letters, "
            "digits, _ and -, 100 at most",
        ),
        (
            '{name="-b", handler="x:y"}',
            "event_bus.services.0.name: given '-b', expected a name like wms-cincout: letters, "
            "digits, _ and -, 100 at most",
        ),
        (
            '{name="a-b", endpoint="http://u:hunter2@x"}, {name="a-b", handler="x:y"}',
            "event_bus.services: given a list of 2, expected each service once; a-b is there twice",
        ),
        ("1", "event_bus.services.0: given 1, expected a table"),
    ],
)
def test_a_fault_says_its_key(tmp_path: Path, services: str, line: str) -> None:
    with pytest.raises(BadSettings) as caught:
        load(tmp_path, {"DLO_EVENT_BUS__SERVICES": f"[{services}]"})
    assert str(caught.value) == f"{line} (from DLO_EVENT_BUS__SERVICES)"


def test_a_service_with_a_handler_that_is_not_there_does_not_start(tmp_path: Path) -> None:
    services = '[{name="a-b", handler="nowhere.at_all:take"}]'
    settings = {"DLO_FLOWS": '["event_bus"]', "DLO_EVENT_BUS__SERVICES": services}
    given = environment("amqp://127.0.0.1:1/", sqlite_in(tmp_path), **settings)
    service = Service(given, tmp_path)
    service.spawn()
    assert service.process is not None
    assert service.process.wait(timeout=30) == 2
    assert service.said().startswith("event_bus.services.0.handler: given 'nowhere.at_all:take'")
    assert "Traceback" not in service.said()
