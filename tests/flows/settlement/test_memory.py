"""The payment story in memory: the same subscribers on the simulated broker, on a real ledger."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from service.core.history import newest_death
from service.core.verdict import Accept, Bury, Requeue, Why
from service.flows.settlement import letters
from service.flows.settlement import topology as tables
from service.ledger.transactions import Status
from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import FLAVOURS, Flavour
from service.simulation.letter import Letter
from tests.flows.settlement.paper import RULES, open_office
from tests.flows.settlement.till import DEAD, MONITOR, WORKER
from tests.servers.waiting import eventually


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
@pytest.mark.parametrize(
    ("account", "attempts", "status", "dead"),
    [
        ("ACME", 1, Status.SETTLED, 0),
        ("FLAKY", 3, Status.SETTLED, 0),
        ("FAIL", 4, Status.PROCESSED, 1),
    ],
)
async def test_how_often_an_account_is_tried_and_where_it_ends(
    sqlite_url: str, flavour: Flavour, account: str, attempts: int, status: Status, dead: int
) -> None:
    async with open_office(sqlite_url, flavour) as office:
        id_ = await office.pay(account)
        await office.move()
        found = await office.look(id_)
        assert (found.attempts, found.status) == (attempts, status)
        assert [payment.attempt for payment in office.bank.asked] == list(range(1, attempts + 1))
        assert len(office.simulation.letters(DEAD)) == len(office.alerts) == dead
        assert len(office.verdicts(Requeue)) == attempts - 1
        for queue in (WORKER, MONITOR):
            assert office.simulation.letters(queue) == office.simulation.unsettled(queue) == ()
        assert office.simulation.lost() == ()


async def test_a_dead_settlement_tells_its_story(sqlite_url: str) -> None:
    async with open_office(sqlite_url) as office:
        id_ = await office.pay("FAIL")
        await office.move()
        (dead,) = office.simulation.letters(DEAD)
        reason = "failed 4 times: the simulated bank fails for account FAIL"
        assert dead.headers["x-dlo-reason"] == reason
        assert dead.headers["x-dlo-error-type"] == "BankFailed"
        assert (dead.headers["x-retry-count"], dead.headers["x-original-queue"]) == (3, WORKER)
        assert dead.properties["message_id"] == f"settlement.requested:{id_}"
        assert office.verdicts(Bury) == [Bury(reason, Why.SPENT)]
        (alert,) = office.alerts
        assert (alert.transaction, alert.attempts, alert.reason) == (id_, 4, reason)
        assert (await office.look(id_)).dead_reason == reason


async def test_a_letter_that_comes_twice_has_one_effect(sqlite_url: str) -> None:
    async with open_office(sqlite_url) as office:
        id_ = await office.pay("ACME")
        await office.move()
        made = await office.look(id_)
        for outgoing in (letters.created(made), letters.requested(made)):
            office.simulation.publish(outgoing.exchange, outgoing.routing_key, outgoing.body)
        await office.rabbit.settled()
        await office.move()
        assert len(office.bank.asked) == 1
        assert await office.look(id_) == made
        assert office.verdicts(Bury, Requeue) == []
        assert len(office.verdicts(Accept)) == 4


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"not json", "refused: the body: Invalid JSON"),
        (b"{}", "refused: transaction_id: Field required"),
        (b'{"transaction_id": "7"}', "refused: transaction_id: Input should be a valid UUID"),
        (b"x" * 5000, "a body of 5000 bytes is over the limit of 4096"),
        (
            b'{"transaction_id": "7b1c8a52-6f0e-4f5c-9f3e-2d1a4c5b6e7f"}',
            "refused: there is no transaction 7b1c8a52-6f0e-4f5c-9f3e-2d1a4c5b6e7f",
        ),
    ],
)
@pytest.mark.parametrize("topic", ["transaction.created", "settlement.requested"])
async def test_letters_that_make_no_sense_are_buried_at_once(
    sqlite_url: str, topic: str, body: bytes, reason: str
) -> None:
    async with open_office(sqlite_url) as office:
        office.simulation.publish(topic, "tx", body)
        await office.rabbit.settled()
        (dead,) = office.simulation.letters(f"dlq.{topic}")
        assert str(dead.headers["x-dlo-reason"]).startswith(reason)
        assert dead.body == body
        assert office.simulation.letters(MONITOR) == office.simulation.unsettled(MONITOR) == ()


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
async def test_nobody_can_skip_or_add_attempts_by_a_header(
    sqlite_url: str, flavour: Flavour
) -> None:
    async with open_office(sqlite_url, flavour) as office:
        id_ = await office.pay("FAIL")
        await office.move()
        office.bank.asked.clear()
        again = letters.requested(await office.look(id_))
        forged: dict[str, Any] = {"x-delivery-count": 3, "x-retry-count": 3, "x-dlo-id": "x"}
        office.simulation.publish(again.exchange, again.routing_key, again.body, forged)
        await office.rabbit.settled()
        assert len(office.bank.asked) == 4
        assert len(office.simulation.letters(DEAD)) == 2


@pytest.mark.parametrize(("kept", "attempts"), [(True, 1), (False, 4)], ids=["marked", "bare"])
async def test_a_dead_letter_moved_back_by_hand(sqlite_url: str, kept: bool, attempts: int) -> None:
    async with open_office(sqlite_url) as office:
        await office.pay("FAIL")
        await office.move()
        office.bank.asked.clear()
        delivery = office.simulation.get(DEAD)
        assert delivery is not None
        office.simulation.ack(delivery)
        dead = delivery.letter
        office.simulation.publish(
            "", WORKER, dead.body, dead.headers if kept else {}, dead.properties
        )
        await office.rabbit.settled()
        assert len(office.bank.asked) == attempts
        assert len(office.simulation.letters(DEAD)) == 1


async def test_a_database_that_is_away_costs_no_attempt(sqlite_url: str) -> None:
    async with open_office(sqlite_url) as office:
        id_ = await office.pay("ACME")
        async with office.book.writing() as connection:
            await connection.exec_driver_sql("ALTER TABLE transactions RENAME TO elsewhere")
        moving = asyncio.create_task(office.move())
        await eventually(lambda: office.simulation.unsettled("transaction.created.worker"))
        before = office.book.opened
        await eventually(lambda: office.book.opened > before + 1)  # it looks again, in vain
        assert office.witness.verdicts == []
        async with office.book.writing() as connection:
            await connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO transactions")
        await moving
        await office.move()
        assert (await office.look(id_)).status is Status.SETTLED
        assert office.verdicts(Bury, Requeue) == []


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
def test_what_nobody_takes_expires_untried(flavour: Flavour) -> None:
    simulation = SimulatedBroker(tables.tables(3, timedelta(minutes=5), RULES.kind), flavour)
    simulation.publish("settlement.requested", "tx", b"{}")
    simulation.advance(timedelta(minutes=4, seconds=59))
    assert simulation.letters(DEAD) == ()
    simulation.advance(timedelta(seconds=2))
    (dead,), (copy,) = simulation.letters(DEAD), simulation.letters(MONITOR)
    assert _reason(dead) == "expired"
    assert copy.headers == dead.headers


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
def test_a_letter_that_kills_its_worker_is_delivered_four_times(flavour: Flavour) -> None:
    simulation = SimulatedBroker(tables.tables(3, timedelta(minutes=5), RULES.kind), flavour)
    for n in range(3):
        simulation.publish("settlement.requested", f"tx {n}", b"{}")
    seen: list[str] = []
    for _ in range(5):
        worker = simulation.consume(
            WORKER, lambda delivery: seen.append(delivery.routing_key), prefetch=1
        )
        simulation.disconnect(worker)
    assert seen == ["tx 0"] * 4 + ["tx 1"]
    (dead,) = simulation.letters(DEAD)
    assert _reason(dead) == "delivery_limit"


def _reason(dead: Letter) -> str:
    death = newest_death(dead.headers)
    assert death is not None
    return death.reason
