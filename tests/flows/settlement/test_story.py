"""The payment story on a real broker: tried four times, buried once, told to people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aio_pika
from aio_pika.abc import AbstractChannel
from yarl import URL

from service.core.duration import parse
from service.core.marks import Seal
from service.edge.declare import declare
from service.flows.desk import utc_now
from service.flows.settlement import letters
from service.flows.settlement.policy import Rules, flow
from service.flows.settlement.topology import REQUESTED
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.ledger.transactions import Draft, Status, Transaction, process, record
from tests.flows.settlement.teller import Asked, Teller, open_teller
from tests.flows.settlement.till import DEAD, MONITOR, WORKER, Till, dead_letters
from tests.kit.broker import channel_to, clean, depth
from tests.kit.process import Service, environment, running
from tests.servers.proxy import proxied
from tests.servers.waiting import eventually

ALONE = {"DLO_FLOWS": '["settlement"]', "DLO_SETTLEMENT__BANK__FLAKY_FAILURES": "3"}


@asynccontextmanager
async def opened(
    rabbit_url: str, database_url: str, folder: Path, **settings: str
) -> AsyncIterator[tuple[Till, AbstractChannel]]:
    """A running service on a clean broker, a till and a channel."""
    await clean(rabbit_url)
    service = Service(environment(rabbit_url, database_url, **ALONE | settings), folder)
    async with running(service), channel_to(rabbit_url) as channel:
        yield Till(service), channel
    assert "Traceback" not in service.said()


async def test_a_failing_account_is_tried_four_times_and_buried_once(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    async with (
        open_teller() as pager,
        opened(rabbit_url, sqlite_url, tmp_path, DLO_SETTLEMENT__ALERT_URL=pager.url("alert")) as (
            till,
            channel,
        ),
    ):
        failing, flaky, good = [await till.pay(a) for a in ("FAIL", "FLAKY", "ACME-1")]
        assert (await till.becomes(good, "settled"))["attempts"] == 1
        assert (await till.becomes(flaky, "settled"))["attempts"] == 4  # the last one works
        await eventually(lambda: till.look(failing)["dead_reason"])
        assert till.look(failing)["attempts"] == 4
        (dead,) = await dead_letters(channel, 1)
        assert dead.message_id == f"settlement.requested:{failing}"
        assert dead.headers["x-dlo-reason"] == till.look(failing)["dead_reason"]
        assert str(dead.headers["x-dlo-reason"]).startswith("failed 4 times: ")
        assert "x-death" not in dead.headers  # not by the queue: there is one owner
        for queue in (WORKER, MONITOR, "dlq.transaction.created"):
            assert await depth(channel, queue) == 0
        (line,) = till.service.lines("settlement_dead")
        assert (line["transaction"], line["attempts"]) == (failing, 4)
        await eventually(lambda: pager.asked)
        assert pager.asked[0].body["transaction"] == failing
        metrics = till.service.get("/metrics")[1]
        assert 'dlo_letters_buried_total{flow="settlement",reason="spent"} 1.0' in metrics


async def test_a_request_that_nobody_takes_is_dead_lettered_as_expired_untried(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    await upgrade(sqlite_url)
    book, id_ = Book(sqlite_url), "7b1c8a52-6f0e-4f5c-9f3e-2d1a4c5b6e7f"
    asked = Transaction(id_, Draft("ACME-1", "1.00", "EUR"), Status.CREATED, utc_now())
    await record(book, asked, None, letters.created)
    await process(book, id_, utc_now(), letters.requested)
    async with book.writing() as connection:
        await connection.exec_driver_sql("DELETE FROM outbox")  # it is sent here, by hand
    await book.close()
    topology = flow(REQUESTED, Rules(ttl=parse("300ms")), Seal()).topology
    async with channel_to(rabbit_url) as channel:
        connection_ = await aio_pika.connect(rabbit_url)
        async with connection_:
            await declare(topology, connection_)
        exchange = await channel.get_exchange(REQUESTED.name)
        letter = letters.requested(asked)
        await exchange.publish(aio_pika.Message(letter.body, delivery_mode=2), id_)

        async def expired() -> bool:
            return await depth(channel, DEAD) == 1

        await eventually(expired)
        short = ALONE | {"DLO_SETTLEMENT__TTL": "300ms"}
        service = Service(environment(rabbit_url, sqlite_url, **short), tmp_path)
        async with running(service):
            till = Till(service)
            await eventually(lambda: till.look(id_)["dead_reason"])
            said = f"expired in {WORKER}, untried"
            assert (till.look(id_)["dead_reason"], till.look(id_)["attempts"]) == (said, 0)
            (verdict,) = service.verdicts("bury")
            assert (verdict["why"], verdict["reason"]) == ("expired", said)
            metrics = service.get("/metrics")[1]
            assert 'dlo_letters_buried_total{flow="settlement",reason="expired"} 1.0' in metrics
        (dead,) = await dead_letters(channel, 1)
        assert json.loads(dead.body)["transaction_id"] == id_
        deaths = dead.headers["x-death"]
        assert isinstance(deaths, list)
        assert isinstance(deaths[0], dict)
        assert deaths[0]["reason"] == "expired"


async def test_what_is_asked_for_while_the_broker_is_away_is_settled_when_it_is_back(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    url = URL(rabbit_url)
    async with proxied(url.host or "", url.port or 5672) as proxy:
        through = str(url.with_host("127.0.0.1").with_port(proxy.port))
        settings = {"DLO_RABBIT__PUBLISH_TIMEOUT": "1s", "DLO_RABBIT__HEARTBEAT": "1s"}
        await clean(rabbit_url)
        service = Service(environment(through, sqlite_url, **ALONE | settings), tmp_path)
        async with running(service), channel_to(rabbit_url) as channel:
            till = Till(service)
            proxy.black_hole()
            proxy.reset()
            ids = [await till.pay() for _ in range(5)]
            await eventually(lambda: service.get("/readyz")[0] == 503)
            await eventually(lambda: service.lines("outbox_waits"), within=15)
            assert {till.look(id_)["status"] for id_ in ids} == {"created"}
            proxy.heal()
            for id_ in ids:
                assert (await till.becomes(id_, "settled", within=20))["attempts"] == 1
            assert await depth(channel, DEAD) == 0
    assert "Traceback" not in service.said()


async def test_two_workers_share_the_queue_and_no_settlement_runs_twice(
    rabbit_url: str, postgres_url: str, tmp_path: Path
) -> None:
    await upgrade(postgres_url)
    await clean(rabbit_url)

    async def slowly(_asked: Asked) -> int:
        await asyncio.sleep(0.05)
        return 200

    def worker(name: str, teller: Teller) -> Service:
        (tmp_path / name).mkdir()
        bank = {"DLO_SETTLEMENT__BANK__URL": teller.url(name)}
        return Service(environment(rabbit_url, postgres_url, **ALONE | bank), tmp_path / name)

    async with open_teller(slowly) as teller:
        one, two = worker("one", teller), worker("two", teller)
        two.spawn()
        async with running(one), channel_to(rabbit_url) as channel:
            try:
                await eventually(two.is_ready, within=30)
                tills = (Till(one), Till(two))
                ids = [await tills[n % 2].pay() for n in range(30)]
                for id_ in ids:
                    assert (await tills[0].becomes(id_, "settled"))["attempts"] == 1
            finally:
                two.kill()
            assert sorted(asked.key for asked in teller.asked) == sorted(ids)
            assert {asked.path for asked in teller.asked} == {"/one", "/two"}
            assert await depth(channel, DEAD) == 0
