"""The forward step in every state it can reach, with crashes and lost connections at every step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from service.core.delivery import Delivery
from service.core.judge import judge
from service.core.marks import Marks, Origin, Seal
from service.core.outcome import Failed
from service.core.plan import Address, Plan, Settle, Ways, plan, returning
from service.core.plan import Reject as ByTheBroker
from service.core.policy import Policy
from service.flows.dlq_processor import policy as processor
from service.flows.dlq_processor.policy import Rules as ProcessorRules
from tests.model.steps import Reading, send_then_settle, settle_then_send
from tests.model.world import Rules, Source, World, endings, explore

MOST_FAULTS = 4
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEAL = Seal(b"a key for the model, long enough")
TIERS = (timedelta(seconds=10), timedelta(seconds=15))
WAYS = processor.ways(ProcessorRules(TIERS, max_retries=1))
ORDERS = Address("", "orders")


def delivery(retries: int) -> Delivery:
    """A letter that failed in orders, after so many retries."""
    origin = Origin("orders", "shop", "order.created")
    marks = Marks("a letter", "dlq_processor", origin, retries, NOW)
    return Delivery(marks, Failed("rejected"), NOW)


def forward(retries: int, ways: Ways = WAYS) -> Plan:
    """What the service plans for it, with one retry allowed."""
    failed = delivery(retries)
    return plan(judge(failed, Policy(TIERS, max_retries=1)), failed, ways, SEAL)


RETRY, BURY = forward(0), forward(1)
RETURN = returning(delivery(1), ORDERS, WAYS, SEAL, timedelta(seconds=10))
REJECT = forward(1, Ways(ByTheBroker(), ByTheBroker()))
assert RETURN.otherwise is not None
EVERYWHERE = frozenset(send.to for p in (RETRY, BURY, RETURN, RETURN.otherwise) for send in p.sends)
PLANS = [
    pytest.param(RETRY, EVERYWHERE, id="a retry"),
    pytest.param(BURY, EVERYWHERE, id="a burial"),
    pytest.param(RETURN, EVERYWHERE, id="a return"),
    pytest.param(RETURN, EVERYWHERE - {ORDERS}, id="a return to a queue that is gone"),
]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the checker found in all states; the same for either order."""

    states: int
    endings: int
    vanished: tuple[World, ...]
    unended: tuple[World, ...]
    piled_up: tuple[World, ...]


def check(rules: Rules) -> Findings:
    """Look at every state that can be reached.

    * vanished: an end in which the letter is in no queue at all.
    * unended: an end in which the letter was not taken off its queue.
    * piled up: more copies than one and one for each fault.
    """
    worlds = explore(rules)
    ends = endings(worlds, rules)
    return Findings(
        len(worlds),
        len(ends),
        tuple(w for w in ends if w.source is Source.GONE and not w.copies),
        tuple(w for w in ends if w.source is not Source.GONE),
        tuple(w for w in worlds if len(w.copies) > w.faults + 1),
    )


def rules(
    todo: Plan, routable: frozenset[Address], reading: Reading = send_then_settle, most: int = 4
) -> Rules:
    """An exploration with so many faults at most."""
    return Rules(todo, reading, routable, most)


@pytest.mark.parametrize(("todo", "routable"), PLANS)
def test_no_letter_vanishes_and_copies_are_counted(
    todo: Plan, routable: frozenset[Address]
) -> None:
    found = check(rules(todo, routable))
    assert found.states > 100, "the model is too small to mean anything"
    assert found.endings
    assert not found.vanished
    assert not found.unended
    assert not found.piled_up


@pytest.mark.parametrize(("todo", "routable"), PLANS)
def test_whenever_the_letter_has_left_its_queue_a_copy_is_stored(
    todo: Plan, routable: frozenset[Address]
) -> None:
    gone = [w for w in explore(rules(todo, routable)) if w.source is Source.GONE]
    assert gone
    assert all(world.copies for world in gone)


@pytest.mark.parametrize(("todo", "routable"), PLANS)
def test_without_a_fault_there_is_exactly_one_copy(
    todo: Plan, routable: frozenset[Address]
) -> None:
    once = rules(todo, routable, most=0)
    assert {len(world.copies) for world in endings(explore(once), once)} == {1}


@pytest.mark.parametrize("faults", range(MOST_FAULTS + 1))
def test_the_bound_on_copies_is_sharp(faults: int) -> None:
    worlds = explore(rules(RETRY, EVERYWHERE, most=faults))
    assert max(len(world.copies) for world in worlds) == faults + 1


@pytest.mark.parametrize(("todo", "routable"), PLANS)
def test_the_same_check_catches_ack_before_publish(
    todo: Plan, routable: frozenset[Address]
) -> None:
    assert check(rules(todo, routable, settle_then_send, most=1)).vanished


def test_a_letter_that_no_queue_takes_is_held_for_ever() -> None:
    held = rules(RETRY, frozenset())
    worlds = explore(held)
    assert all(world.source is not Source.GONE for world in worlds)
    assert not endings(worlds, held)


def test_a_rejected_letter_is_carried_by_the_broker_alone() -> None:
    assert REJECT.settle is Settle.REJECT
    found = check(rules(REJECT, frozenset()))
    assert not found.vanished
    assert not found.unended
    assert not found.piled_up
