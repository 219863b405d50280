"""Handlers from settings: found by their paths, called with what they ask for, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.core.outcome import Refuse
from service.flows.freeflow.event import Event
from service.flows.freeflow.handlers import find
from service.flows.handlers import NoHandler
from service.rooms import handler_faults
from service.settings import BadSettings, load
from tests.flows.freeflow import team

HERE = "tests.flows.freeflow.team"


def event(body: bytes) -> Event:
    """An event with this body."""
    return Event(body, "document.created", "freeflow.events", "document", {}, 0, "d-1")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("event", event(b'{"id": 1}')),
        ("plain", event(b'{"id": 1}')),
        ("blocking", {"id": 1}),
        ("body", b'{"id": 1}'),
        ("mapping", {"id": 1}),
        ("document", team.Document(id=1)),
    ],
)
async def test_a_handler_takes_what_its_parameter_asks_for(name: str, taken: object) -> None:
    team.taken.clear()
    await find(f"{HERE}:{name}")(event(b'{"id": 1}'))
    assert team.taken == [taken]


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("blocking", b"{nope", "the body is not JSON: "),
        ("mapping", b"{nope", "the body is not what the handler takes: body: Invalid JSON"),
        ("document", b'{"id": "x"}', "the body is not what the handler takes: id: Input should be"),
        ("document", b"\xff", "the body is not what the handler takes: body: "),
        ("archive", b"{}", "full"),
    ],
)
async def test_a_body_that_it_cannot_take_is_refused(name: str, body: bytes, said: str) -> None:
    with pytest.raises(Refuse, match="^" + said):
        await find(f"{HERE}:{name}")(event(body))


FAULTS = {
    "user": ("nowhere.at.all:f", "nowhere.at.all cannot be imported: ModuleNotFoundError: "),
    "auth": (f"{HERE}:missing", f"there is no missing in {HERE}"),
    "alarm": (f"{HERE}:NUMBER", f"{HERE}:NUMBER is not a function"),
    "document": (f"{HERE}:two", f"{HERE}:two must take one parameter: the event"),
    "workflow": (f"{HERE}:none", f"{HERE}:none must take one parameter: the event"),
    "notification": (
        f"{HERE}:strange",
        f"{HERE}:strange asks for <class '{HERE}.Archive'>, which no",
    ),
    "audit": (HERE, "expected package.module:function, given"),
}


@pytest.mark.parametrize(("path", "said"), FAULTS.values(), ids=FAULTS)
def test_a_path_that_leads_to_no_handler(path: str, said: str) -> None:
    with pytest.raises(NoHandler) as fault:
        find(path)
    assert str(fault.value).startswith(said)


def test_all_faults_are_said_at_once_with_those_of_other_settings(tmp_path: Path) -> None:
    table = "".join(f'{domain} = "{path}", ' for domain, (path, _) in FAULTS.items())
    given = {
        "DLO_FREEFLOW__HANDLERS": f'{{ {table} invoice = "{HERE}:event" }}',
        "DLO_WEB__PORT": "http",
    }
    with pytest.raises(BadSettings) as bad:
        load(tmp_path, given, also=handler_faults)
    lines = str(bad.value).splitlines()
    assert len(lines) == len(FAULTS) + 2
    for domain, (_, said) in FAULTS.items():
        (line,) = [line for line in lines if line.startswith(f"freeflow.handlers.{domain}: ")]
        assert said in line
        assert line.endswith("(from DLO_FREEFLOW__HANDLERS)")
    assert [line.partition(":")[0] for line in lines[:2]] == [
        "freeflow.handlers.invoice",
        "web.port",
    ]


def test_handlers_of_a_flow_that_is_off_are_not_looked_at(tmp_path: Path) -> None:
    given = {
        "DLO_FREEFLOW__HANDLERS": '{ user = "nowhere:f" }',
        "DLO_FLOWS": '["dlq_processor"]',
    }
    assert load(tmp_path, given, also=handler_faults).freeflow.handlers == {"user": "nowhere:f"}
