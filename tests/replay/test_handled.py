"""Handlers under our middleware report that they took a letter; attempts are continued or fresh."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from aio_pika import Message

from tests.kit.broker import clean
from tests.replay.handlers import FOLDER
from tests.replay.story import office, story

FLOWS = ("freeflow", "event_bus")
EACH = 5
BUS = tuple(f"wms.{kind}.wms-one" for kind in ("queue", "retry-queue", "dlq"))


async def test_letters_that_handlers_take_are_handled(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    service = office(
        rabbit_url,
        sqlite_url,
        tmp_path,
        DLO_FLOWS='["freeflow", "event_bus"]',
        DLO_FREEFLOW__TIERS='{"30s" = "50ms", "5m" = "60ms", "30m" = "70ms"}',
        DLO_FREEFLOW__MAX_RETRIES="1",
        DLO_FREEFLOW__HANDLERS='{user = "tests.replay.handlers:user"}',
        DLO_EVENT_BUS__MAX_RETRIES="1",
        DLO_EVENT_BUS__RETRY_AFTER="50ms",
        DLO_EVENT_BUS__SERVICES='[{name = "wms-one", handler = "tests.replay.handlers:bus"}]',
        DLO_REPLAY__WATCH="5s",
        **{FOLDER: str(tmp_path)},
    )
    broken = tmp_path / "broken"
    broken.touch()
    async with story(service, rabbit_url) as office_:
        await service.start()
        for number in range(EACH):
            for exchange, key in (("freeflow.events", "user.created"), ("wms.main-exchange", "e")):
                to = await office_.publishing.get_exchange(exchange, ensure=False)
                await to.publish(Message(f"{key}-{number}".encode()), key)
        await office_.parked(2 * EACH)
        assert _attempts(tmp_path) == dict.fromkeys(FLOWS, 2 * EACH)

        for attempts, more in (("continued", 1), ("fresh", 2)):
            before = _attempts(tmp_path)
            for flow in FLOWS:
                job = await office_.ended(office_.start(filter={"flow": flow}, attempts=attempts))
                assert job["says"] == "the canary came back: 1 of 1"
            assert _attempts(tmp_path) - before == dict.fromkeys(FLOWS, more)

        broken.unlink()
        before = _attempts(tmp_path)
        started = [office_.start(filter={"flow": flow}) for flow in FLOWS]
        for id_ in started:
            ended = await office_.ended(id_)
            assert (ended["state"], ended["letters"]) == ("finished", {"handled": EACH})
        assert _attempts(tmp_path) - before == dict.fromkeys(FLOWS, EACH)
        assert office_.states() == {"handled": 2 * EACH}
    await clean(rabbit_url, *BUS, exchanges=("wms.main-exchange", "wms.retry-exchange.wms-one"))


def _attempts(folder: Path) -> Counter[str]:
    lines = (folder / "attempts").read_text().splitlines()
    return Counter(line.split()[0] for line in lines)
