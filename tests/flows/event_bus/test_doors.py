"""The two doors, without a broker: an endpoint that misbehaves, and a Python function."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from service.composition import create
from service.core.outcome import Done, Failed, NotYet, Outcome, Refuse, Refused, TooEarly
from service.flows.event_bus.event import Event
from service.flows.event_bus.functions import door, find
from service.flows.event_bus.push import Endpoint as Target
from service.flows.event_bus.push import Pusher
from service.flows.handlers import NoHandler
from service.settings import BadSettings, Settings
from tests.kit.endpoint import Answer, Endpoint, listening

S = timedelta(seconds=1)
HERE = "tests.flows.event_bus.test_doors"


async def take(event: Event) -> None:
    """A user's function: does what the body says."""
    match event.body:
        case b"refuse":
            raise Refuse("amount must be positive")
        case b"early":
            raise NotYet(3 * S)
        case b"slow":
            await asyncio.sleep(60)
        case b"fail":
            raise ValueError("boom")
        case b"late":
            raise TimeoutError("the bank")


def plain(event: Event) -> None:
    """Not async: it would hold up everybody."""


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b"fine", Done()),
        (b"refuse", Refused("amount must be positive", kind="Refuse")),
        (b"early", TooEarly(3 * S)),
        (b"fail", Failed("boom", kind="ValueError")),
        (b"late", Failed("the bank", kind="TimeoutError")),  # its own, not ours
        (b"slow", Failed("not done within 100ms", kind="TimeoutError")),
    ],
)
async def test_a_function_speaks_in_outcomes(body: bytes, outcome: Outcome) -> None:
    reply = await door(find(f"{HERE}:take"), S / 10)(Event(body))
    assert reply.outcome == outcome


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere.at_all:take", "cannot be imported: ModuleNotFoundError"),
        (f"{HERE}:missing", "there is no missing in"),
        (f"{HERE}:plain", "is not an async function"),
        (f"{HERE}:HERE", "is not a function"),
    ],
)
def test_a_handler_that_is_not_there_is_a_fault_with_its_key(path: str, why: str) -> None:
    with pytest.raises(NoHandler, match=why):
        find(path)
    services = [{"name": "a-b", "handler": f"{HERE}:take"}, {"name": "c-d", "handler": path}]
    with pytest.raises(BadSettings, match=f"event_bus.services.1.handler: given '{path}'.*{why}"):
        create(Settings.model_validate({"event_bus": {"services": services}}))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(200), Done()),
        (
            Answer(500, b"oh\nno"),
            Failed("HTTP 500 Internal Server Error: oh", "500 Internal Server Error", status=500),
        ),
        (Answer(200, after=5), Failed("no answer within 200ms", kind="TimeoutError")),
        (Answer(425, b'{"processAfterDelayMs": 700}'), TooEarly(0.7 * S)),
    ],
)
async def test_an_answer_is_an_outcome(answer: Answer, outcome: Outcome) -> None:
    pusher = Pusher()
    async with listening(Endpoint(lambda _request: answer)) as url:
        reply = await pusher.door(Target(url, S / 5, 5 * S))(Event(b"body"))
        await pusher.close()
    assert reply.outcome == outcome


async def test_nobody_there_is_a_failure_that_says_so() -> None:
    pusher = Pusher()
    reply = await pusher.door(Target("http://127.0.0.1:1/", S, 5 * S))(Event(b"body"))
    await pusher.close()
    assert isinstance(reply.outcome, Failed)
    assert (reply.outcome.kind, reply.outcome.status) == ("ConnectError", None)


async def test_a_status_whose_body_never_ends_is_an_answer_all_the_same() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n...")
        await reader.read()
        writer.close()

    pusher = Pusher()
    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        reply = await pusher.door(Target(url, S / 5, 5 * S))(Event(b""))
        await pusher.close()
    assert reply.outcome == Done()


async def test_no_redirect_is_followed_and_no_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1/")
    pusher, endpoint = Pusher(), Endpoint()
    async with listening(endpoint) as url:
        endpoint.script = lambda _request: Answer(307, headers={"location": f"{url}/elsewhere"})
        reply = await pusher.door(Target(f"{url}/here", S, 5 * S))(Event(b"body"))
        await pusher.close()
    assert [request.path for request in endpoint.seen] == ["/here"]
    assert isinstance(reply.outcome, Failed)
    assert reply.outcome.status == 307
