"""People are told of each new or regressed cause once, by whichever process, when they can be reached."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select, update

from service.back_office import channels_of
from service.core.alerting import Alarm, Patience
from service.core.states import CauseState
from service.ledger import alarms
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.ledger.tables import CAUSES, LETTER_COUNTS
from service.office.channels import Apprise, NoApprise, Webhook
from service.office.watch import NotTold, Watch
from service.settings import BadSettings, Settings
from tests.kit.endpoint import Answer, Endpoint, listening

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
NEW, REGRESSED, MUTED = CauseState.NEW, CauseState.REGRESSED, CauseState.MUTED


@pytest.fixture
async def book(database_url: str) -> AsyncIterator[Book]:
    await upgrade(database_url)
    book = Book(database_url)
    yield book
    await book.close()


class Told:
    """A channel that writes down whom it told of what; it fails as often as it is asked to."""

    def __init__(self, failures: int = 0) -> None:
        self.messages: list[list[str]] = []
        self.failures = failures

    async def tell(self, about: Sequence[Alarm], at: datetime) -> None:
        await asyncio.sleep(0)  # let a second watch in between
        if self.failures:
            self.failures -= 1
            raise NotTold("nobody is there")
        self.messages.append([alarm.cause for alarm in about])


async def appears(book: Book, name: str, state: CauseState = NEW, at: datetime = NOW) -> None:
    row = CAUSES.insert().values(
        id=name,
        version=1,
        title="ValueError",
        error_type="ValueError",
        place="",
        state=state.value,
        muted_until=NOW + timedelta(hours=1) if state is MUTED else None,
        first_seen=at,
        last_seen=at,
        changed_at=at,
    )
    counts = [
        {"cause": name, "flow": "freeflow", "state": state, "letters": n}
        for state, n in (("parked", 3), ("back", 2), ("quiet", 40))
    ]
    async with book.writing() as connection:
        await connection.execute(row)
        await connection.execute(LETTER_COUNTS.insert(), counts)


async def becomes(book: Book, name: str, state: CauseState, at: datetime) -> None:
    step = update(CAUSES).where(CAUSES.c.id == name)
    async with book.writing() as connection:
        await connection.execute(step.values(state=state.value, changed_at=at))


def watch(book: Book, *channels: Any, at: datetime = NOW, **patience: Any) -> Watch:
    ticks = itertools.count()

    def clock() -> datetime:
        return at + timedelta(microseconds=next(ticks))

    return Watch(book, channels, Patience(**patience), clock=clock)


async def test_a_cause_is_told_once_and_again_when_it_comes_again(book: Book) -> None:
    told = Told()
    await appears(book, "a")
    await appears(book, "known", CauseState.ACKNOWLEDGED)
    for _ in range(3):
        await watch(book, told).look()
    assert told.messages == [["a"]]
    later = NOW + timedelta(hours=1)
    await becomes(book, "a", CauseState.RESOLVED, later)
    await watch(book, told, at=later).look()
    await becomes(book, "a", REGRESSED, later)
    for _ in range(2):
        await watch(book, told, at=later).look()
    assert told.messages == [["a"], ["a"]]


async def test_an_alarm_counts_the_letters_that_need_somebody(book: Book) -> None:
    await appears(book, "a")
    assert await alarms.due(book, NOW) == (Alarm("a", NEW, 5, NOW),)


async def test_a_muted_cause_is_silent_and_its_mute_ends(book: Book) -> None:
    told = Told()
    await appears(book, "m", MUTED)
    await watch(book, told).look()
    after = NOW + timedelta(hours=2)
    await watch(book, told, at=after).look()
    assert told.messages == []
    async with book.reading() as connection:
        state = await connection.scalar(select(CAUSES.c.state).where(CAUSES.c.id == "m"))
    assert state == "acknowledged"


async def test_a_flood_is_one_message_and_the_rest_waits_for_the_window(book: Book) -> None:
    told = Told()
    for number in range(3):
        await appears(book, f"first-{number}")
    await watch(book, told, digest_after=3).look()
    for number in range(4):
        await appears(book, f"then-{number}", at=NOW + timedelta(minutes=1))
    await watch(book, told, digest_after=3, at=NOW + timedelta(minutes=2)).look()
    assert told.messages == [["first-0"], ["first-1"], ["first-2"]]
    await watch(book, told, digest_after=3, at=NOW + timedelta(minutes=11)).look()
    assert told.messages[3:] == [[f"then-{number}" for number in range(4)]]


async def test_what_could_not_be_told_is_told_later(book: Book) -> None:
    told = Told(failures=1)
    await appears(book, "a")
    with pytest.raises(NotTold):
        await watch(book, told).look()
    await watch(book, told).look()
    assert told.messages == [["a"]]


async def test_two_processes_tell_once(book: Book, database_url: str) -> None:
    second, told = Book(database_url), Told()
    for number in range(5):
        await appears(book, f"{number}")
    await asyncio.gather(watch(book, told).look(), watch(second, told).look())
    await second.close()
    assert sorted(told.messages) == [[f"{number}"] for number in range(5)]


async def test_what_a_dead_process_had_taken_is_told_by_the_next(book: Book) -> None:
    told = Told()
    await appears(book, "a")
    assert await alarms.claim(book, ["a"], NOW, NOW + timedelta(minutes=1)) == {"a"}
    await watch(book, told).look()
    assert told.messages == []
    await watch(book, told, at=NOW + timedelta(minutes=2)).look()
    assert told.messages == [["a"]]


async def test_the_webhook_gets_ids_and_counts() -> None:
    endpoint = Endpoint(lambda request: Answer(500 if len(endpoint.seen) == 1 else 204))
    async with listening(endpoint) as url:
        await Webhook(f"{url}/hook?token=t").tell([Alarm("a", REGRESSED, 7, NOW)], NOW)
    assert [request.path for request in endpoint.seen] == ["/hook?token=t"] * 2
    assert json.loads(endpoint.seen[-1].body) == {
        "event": "cause.regressed",
        "at": "2026-03-01T03:00:00+00:00",
        "causes": [
            {
                "id": "a",
                "state": "regressed",
                "letters": 7,
                "since": "2026-03-01T03:00:00+00:00",
                "path": "/causes/a",
            }
        ],
    }


async def test_a_webhook_that_does_not_take_it_is_a_sentence_without_its_address() -> None:
    async with listening(Endpoint(lambda _request: Answer(403))) as url:
        with pytest.raises(NotTold, match=r"^the webhook of alerts.webhook answers 403$"):
            await Webhook(f"{url}/secret").tell([Alarm("a", NEW, 1, NOW)], NOW)
    with pytest.raises(NotTold, match=r"^alerts.webhook cannot be reached: ConnectError$"):
        await Webhook("http://127.0.0.1:1/secret").tell([Alarm("a", NEW, 1, NOW)], NOW)


async def test_apprise_tells_in_words() -> None:
    endpoint = Endpoint(lambda _request: Answer(200))
    async with listening(endpoint) as url:
        channel = Apprise([url.replace("http://", "json://")])
        await channel.tell([Alarm("a", NEW, 7, NOW), Alarm("b", NEW, 1, NOW)], NOW)
    said = json.loads(endpoint.seen[0].body)
    assert said["title"] == "Dead letters: 2 causes"
    assert said["message"].splitlines() == [
        "new cause a: 7 letters parked",
        "new cause b: 1 letters parked",
    ]


def test_apprise_without_its_extra_is_a_fault_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    settings = Settings.model_validate({"alerts": {"apprise": [SecretStr("json://x")]}})
    with pytest.raises(BadSettings, match=r"alerts\.apprise.*dead-letter-office\[alerts\]"):
        channels_of(settings)
    with pytest.raises(NoApprise):
        Apprise(["json://x"])
