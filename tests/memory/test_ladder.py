"""A failing letter's whole life, in memory and in milliseconds: the same subscribers as on RabbitMQ."""

from __future__ import annotations

from itertools import pairwise

import pytest

from service.core.marks import Marks, Origin, Seal, stamp
from service.core.route import ReturnTo, Route
from service.core.verdict import Bury, Retry, Why
from service.simulation.flavour import FLAVOURS, Flavour
from service.simulation.letter import Delivery
from tests.memory.office import KEY, Office, open_office


def reject_all(_delivery: Delivery) -> bool:
    """Nothing works."""
    return False


@pytest.mark.parametrize("quorum", [False, True], ids=["classic", "quorum"])
@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
async def test_a_letter_climbs_the_ladder_and_is_buried_once(
    flavour: Flavour, quorum: bool
) -> None:
    async with open_office(Route("order.created", 3), flavour=flavour, quorum=quorum) as office:
        office.consume(reject_all)
        office.publish("order.created", {"tenant": "acme"}, message_id="m1")
        await office.rabbit.advance(3600)
        assert office.moments == [0, 10, 25, 45]
        (dead,) = office.dead
        assert dead.headers["x-dlo-reason"] == "failed 4 times: rejected by a consumer of orders"
        assert (dead.headers["tenant"], dead.properties["message_id"]) == ("acme", "m1")
        assert [type(verdict) for verdict in office.witness.verdicts] == [*[Retry] * 3, Bury]
        assert office.witness.returned_letters == 3
        assert len(office.simulation.letters("audit")) == 1  # retries are for `orders` alone
        assert office.simulation.lost() == ()


async def test_a_letter_that_works_the_second_time_is_nobody_elses_business() -> None:
    async with open_office(Route("order.#", 3)) as office:
        office.consume(lambda delivery: "x-retry-count" in delivery.headers)
        office.publish("order.created")
        await office.rabbit.advance(3600)
        assert office.moments == [0, 10]
        assert office.dead == ()


@pytest.mark.parametrize(
    ("route", "moments"),
    [
        (Route("order.created", 0), [0]),
        (Route("order.created", None), [0, 10, 25, 45]),
        (Route("order.created", 5), [0, 10, 25, 45, 65, 85]),
        (Route("order.*", 1), [0, 10]),
        (Route("order.other", 3), [0]),
    ],
)
async def test_how_often_a_route_retries(route: Route, moments: list[float]) -> None:
    async with open_office(route) as office:
        office.consume(reject_all)
        office.publish("order.created")
        await office.rabbit.advance(3600)
        assert office.moments == moments
        assert len(office.dead) == 1


async def test_a_key_without_a_route_is_buried_at_once() -> None:
    async with open_office() as office:
        office.consume(reject_all)
        office.publish("order.created")
        await office.rabbit.advance()
        assert office.dead[0].headers["x-dlo-reason"] == "no route for order.created"
        assert office.witness.verdicts == [Bury("no route for order.created", Why.NO_ROUTE)]


async def test_return_to_exchange() -> None:
    async with open_office(Route("order.created", 1, return_to=ReturnTo.EXCHANGE)) as office:
        office.consume(reject_all)
        office.publish("order.created")
        await office.rabbit.advance(60)
        assert len(office.simulation.letters("audit")) == 2
        assert office.seen[1][1].exchange == "shop"


async def test_a_hundred_retries_leave_the_headers_as_large_as_one() -> None:
    async with open_office(Route("order.created", -1)) as office:
        office.consume(reject_all)
        office.publish("order.created", {"tenant": "acme"}, message_id="m1")
        await office.rabbit.advance(20 * 101)
        sizes = [len(repr(sorted(delivery.headers.items()))) for _, delivery in office.seen[1:]]
        assert len(sizes) >= 100
        digits = 2 * len("99")  # the count itself, and the count of deaths
        assert max(sizes) - min(sizes) <= digits
        assert all(after[0] - before[0] == 20 for before, after in pairwise(office.seen[3:]))


@pytest.mark.parametrize("key", [KEY, b""], ids=["signed", "believed as read"])
async def test_marks_are_believed_only_where_our_key_signed_them(key: bytes) -> None:
    origin = Origin("orders", "shop", "order.created")
    async with open_office(Route("order.#", 3), key=key) as office:
        forged = Marks("m1", "dlq_processor", origin, 3, office.begun)
        office.consume(reject_all)
        office.publish("order.created", dict(stamp(forged, Seal(b"another key"))), message_id="m1")
        await office.rabbit.advance(3600)
        assert len(office.seen) == (4 if key else 1)
        assert len(office.dead) == 1


async def test_an_absurd_count_that_is_believed_is_still_buried() -> None:
    """Without a key anybody may write a count; it must not stop the queue."""
    origin = Origin("orders", "shop", "order.created")
    async with open_office(Route("order.#", -1), key=b"") as office:
        absurd = Marks("m1", "dlq_processor", origin, 2**63 - 1, office.begun)
        office.consume(reject_all)
        office.publish("order.created", dict(stamp(absurd, Seal(b""))), message_id="m1")
        await office.rabbit.advance(1)
        assert len(office.dead) == 1
        assert office.simulation.unsettled("retry-queue") == ()


async def test_a_letter_whose_queue_is_gone_is_buried_with_the_reason() -> None:
    async with open_office(Route("order.#", 3)) as office:
        nowhere = Marks("m1", "dlq_processor", Origin("gone", "shop", "order.x"), 1, office.begun)
        send_to_returning_queue(office, nowhere)
        await office.rabbit.advance()
        assert office.dead[0].headers["x-dlo-reason"] == "nobody takes it any more at queue gone"
        assert office.dead[0].headers["x-original-queue"] == "gone"


async def test_a_letter_too_large_to_be_retried() -> None:
    async with open_office(Route("order.#", 3)) as office:
        office.consume(reject_all)
        office.simulation.publish("shop", "order.created", b"x" * 1025)
        await office.rabbit.advance()
        reason = "a body of 1025 bytes is over the limit of 1024"
        assert office.dead[0].headers["x-dlo-reason"] == reason
        assert len(office.dead[0].body) == 1025


def send_to_returning_queue(office: Office, marks: Marks) -> None:
    """A letter whose wait is over."""
    headers = dict(stamp(marks, Seal(KEY)))
    office.simulation.publish("", "retry-queue-1", b"{}", headers, {"message_id": marks.letter})
