"""FreeFlow as its users run it: the service and a team's own application, on a real RabbitMQ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from itertools import product
from pathlib import Path

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aiormq.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed

from tests.kit.broker import channel_to, clean, depth, drain
from tests.kit.process import KEY, ROOT, Service, compiled, environment, running
from tests.servers.waiting import eventually

DOMAINS = ("user", "auth", "alarm", "document", "workflow", "notification", "audit")
TIERS = {"30s": 30_000, "5m": 300_000, "30m": 1_800_000}
SCALED = '{ "30s" = "100ms", "5m" = "200ms", "30m" = "300ms" }'
TEAM = "tests.flows.freeflow.team"
DEAD = "freeflow.events.dlq"


@pytest.fixture
async def channel(rabbit_url: str) -> AsyncIterator[AbstractChannel]:
    """A channel to a broker with nothing of ours on it."""
    await clean(rabbit_url, "search")
    async with channel_to(rabbit_url) as channel:
        yield channel
    await clean(rabbit_url, "search")


def service_with(rabbit_url: str, sqlite_url: str, folder: Path, **settings: str) -> Service:
    """The service with this flow alone, its waits scaled unless told otherwise."""
    given = {"DLO_FLOWS": '["freeflow"]', "DLO_FREEFLOW__TIERS": SCALED, **settings}
    return Service(environment(rabbit_url, sqlite_url, **given), folder)


async def test_all_21_retry_queues_stand_with_the_documented_arguments(
    channel: AbstractChannel, rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    service = service_with(rabbit_url, sqlite_url, tmp_path)
    given = {k: v for k, v in service.environment.items() if k != "DLO_FREEFLOW__TIERS"}
    async with running(Service(given, tmp_path)):
        for domain, (tier, wait) in product(DOMAINS, TIERS.items()):
            documented: dict[str, str | int] = {
                "x-message-ttl": wait,
                "x-dead-letter-exchange": "freeflow.events",
                "x-dead-letter-routing-key": f"{domain}.retry",
            }
            name = f"freeflow.{domain}.retry.{tier}"
            await channel.declare_queue(name, durable=True, arguments={**documented})
        for exchange, kind in (("", "topic"), (".retry", "direct"), (".dlx", "fanout")):
            await channel.declare_exchange(f"freeflow.events{exchange}", kind, durable=True)
        retries = await channel.get_exchange("freeflow.events.retry")
        for domain, tier in product(DOMAINS, TIERS):
            await retries.publish(Message(b"{}"), f"{domain}.{tier}")
            assert await depth(channel, f"freeflow.{domain}.retry.{tier}") == 1
        with pytest.raises(ChannelPreconditionFailed):  # RabbitMQ does compare
            await channel.declare_queue(name, durable=True, arguments={"x-message-ttl": 1})


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_a_document_climbs_the_tiers_and_is_buried_after_the_fourth_failure(
    kind: str, channel: AbstractChannel, rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    handlers = f'{{ document = "{TEAM}:always_fails" }}'
    service = service_with(
        rabbit_url,
        sqlite_url,
        tmp_path,
        DLO_FREEFLOW__HANDLERS=handlers,
        DLO_QUEUES__TYPE=kind,
    )
    async with running(service):
        await search(channel)
        await publish(channel, "document.created")
        (dead,) = await buried(channel)
        first, *retries = await drain(channel, "search")
        assert (first.routing_key, first.headers.get("x-retry-count")) == ("document.created", None)
        assert [waited_in(letter) for letter in retries] == [
            f"freeflow.document.retry.{tier}" for tier in TIERS
        ]
        for number, letter in enumerate(retries, start=1):
            assert letter.routing_key == "document.retry"
            carries(letter, number)
        carries(dead, 3)
        assert dead.headers["x-dlo-reason"] == "failed 4 times: cannot take document.created"
        assert dead.headers["x-dlo-error-type"] == "ValueError"
        assert [line["after"] for line in service.verdicts("retry")] == ["100ms", "200ms", "300ms"]
        assert await depth(channel, "freeflow.document") == 0
    assert "Traceback" not in service.said()


async def test_return_to_queue_and_a_tier_that_does_not_exist(
    channel: AbstractChannel, rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    handlers = f'{{ document = "{TEAM}:always_fails", user = "{TEAM}:wishes" }}'
    service = service_with(
        rabbit_url,
        sqlite_url,
        tmp_path,
        DLO_FREEFLOW__HANDLERS=handlers,
        DLO_FREEFLOW__RETURN_TO="queue",
    )
    async with running(service):
        await search(channel)
        await publish(channel, "document.created")
        await publish(channel, "user.created")
        (dead,) = await buried(channel)
        assert dead.headers["x-dlo-reason"] == "failed 4 times: cannot take document.created"
        assert len(await drain(channel, "search")) == 1  # nobody else gets a copy of a retry
        (line,) = service.lines("unknown_tier")
        said = "there is no tier 7m (30s, 5m, 30m), so the next one was taken"
        assert (line["event"], line["origin"]) == (said, "freeflow.user")
        await eventually(lambda: empty(channel, "freeflow.user"))
        assert await depth(channel, DEAD) == 0  # it was content at its first retry


def test_faults_in_handlers_end_the_start_with_a_sentence_each(tmp_path: Path) -> None:
    wrong = {
        "DLO_FREEFLOW__HANDLERS": f'{{ user = "{TEAM}:two", invoice = "{TEAM}:event" }}',
        "DLO_LOG__LEVEL": "loud",
    }
    done = start("service.app:app", wrong)
    assert done.returncode == 2
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == [
        "freeflow.handlers.invoice",
        "log.level",
        "freeflow.handlers.user",
    ]


async def test_a_team_s_own_application(
    channel: AbstractChannel, rabbit_url: str, tmp_path: Path
) -> None:
    """The one of docs/flows/freeflow.md, its tiers as documented."""
    application = spawn("docs.examples.documents:app", RABBIT_URL=rabbit_url, MARKS_KEY=KEY)
    try:
        await eventually(lambda: consumed(rabbit_url), within=20)
        for body in (
            b'{"id": 1, "pages": 3}',
            b'{"id": 2, "pages": 0}',
            b'{"id": 3, "pages": 500}',
        ):
            await publish(channel, "document.created", body)
        await publish(channel, "document.created", b"{nope")
        dead = await buried(channel, 2)
        assert {letter.headers["x-dlo-reason"] for letter in dead} == {
            "refused: a document without pages is never indexed",
            "cannot be read: JSONDecodeError: Expecting property name enclosed in double quotes:"
            " line 1 column 2 (char 1)",
        }
        await eventually(lambda: holds(channel, "freeflow.document.retry.5m"))
        assert await depth(channel, "freeflow.document") == 0
    finally:
        application.terminate()
        said, _ = application.communicate(timeout=20)
    assert b"indexed 1" in said
    assert application.returncode == 0


def test_the_application_is_the_one_in_the_docs() -> None:
    page = (ROOT / "docs" / "flows" / "freeflow.md").read_text()
    assert (ROOT / "docs" / "examples" / "documents.py").read_text().strip() in page


def command(app: str) -> tuple[str, ...]:
    """As people start it."""
    return (sys.executable, "-m", "faststream", "run", app)


def spawn(app: str, **environ: str) -> subprocess.Popen[bytes]:
    """Start it, and go on."""
    return subprocess.Popen(
        command(app),
        cwd=ROOT,
        env={**os.environ, **compiled(), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def start(app: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Start it, and wait for its end."""
    return subprocess.run(
        command(app),
        cwd=ROOT,
        env={**os.environ, **compiled(), **environ},
        capture_output=True,
        text=True,
        timeout=30,
    )


async def publish(channel: AbstractChannel, key: str, body: bytes = b'{"id": 42}') -> None:
    """An event of another service's."""
    events = await channel.get_exchange("freeflow.events")
    letter = Message(body, content_type="application/json", headers={"tenant": "acme"})
    await events.publish(letter, key)


async def search(channel: AbstractChannel) -> None:
    """Another team's queue for documents."""
    queue = await channel.declare_queue("search", durable=True)
    await queue.bind("freeflow.events", "document.*")


def waited_in(letter: AbstractIncomingMessage) -> str:
    """The queue it expired in last, by the broker's own word."""
    deaths = letter.headers["x-death"]
    assert isinstance(deaths, list)
    assert isinstance(deaths[0], dict)
    assert deaths[0]["reason"] == "expired"
    return str(deaths[0]["queue"])


def carries(letter: AbstractIncomingMessage, retries: int) -> None:
    """The documented headers, and the sender's own."""
    headers = letter.headers
    assert headers["x-retry-count"] == retries
    assert headers["x-original-routing-key"] == "document.created"
    assert headers["x-original-exchange"] == "freeflow.events"
    assert (headers["tenant"], letter.body) == ("acme", b'{"id": 42}')


async def buried(channel: AbstractChannel, count: int = 1) -> list[AbstractIncomingMessage]:
    """Wait until so many letters are dead, and take them out."""
    await eventually(lambda: holds(channel, DEAD, count), within=10)
    return await drain(channel, DEAD)


async def holds(channel: AbstractChannel, queue: str, count: int = 1) -> bool:
    """Whether so many letters stand in a queue."""
    return await depth(channel, queue) == count


async def empty(channel: AbstractChannel, queue: str) -> bool:
    """Whether none does."""
    return await depth(channel, queue) == 0


async def consumed(rabbit_url: str) -> bool:
    """Whether somebody consumes from `freeflow.document`; a channel dies of a queue that is not there."""
    async with channel_to(rabbit_url) as channel:
        try:
            queue = await channel.declare_queue("freeflow.document", passive=True)
        except ChannelNotFoundEntity:
            return False
        return bool(queue.declaration_result.consumer_count)
