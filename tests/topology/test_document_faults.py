"""The document's own tables lose letters in three ways; each is found, and nothing else is."""

from __future__ import annotations

import pytest

from service.simulation.broker import SimulatedBroker
from service.simulation.journal import Happening
from service.topology.faults import Fault, FaultKind, faults
from tests.topology.as_written import AS_WRITTEN, SENDS


def found(kind: FaultKind) -> list[Fault]:
    return [fault for fault in faults(AS_WRITTEN, SENDS) if fault.kind is kind]


def test_the_dead_letter_queue_is_bound_with_another_key_than_is_sent() -> None:
    fault = next(fault for fault in found(FaultKind.UNROUTABLE) if fault.where == "dlq-exchange")
    assert fault.sentence == (
        "key 'dlq-routing-key' is sent to exchange 'dlq-exchange' and no binding takes it:"
        " the letter is gone; bound are 'dlq-exchange'"
    )


def test_the_retry_queues_are_bound_with_a_blank_key() -> None:
    queues = ["retry-queue-1", "retry-queue-2", "retry-queue-3"]
    assert [fault.where for fault in found(FaultKind.BLANK_KEY)] == queues


def test_so_every_expired_letter_is_gone() -> None:
    queues = ["queue.delay.1", "queue.delay.2", "queue.delay.3"]
    assert [fault.where for fault in found(FaultKind.DEAD_END)] == queues


def test_a_fourth_retry_has_no_queue_to_wait_in() -> None:
    fault = next(fault for fault in found(FaultKind.UNROUTABLE) if fault.where == "route-delay")
    assert "'binding.x.4'" in fault.sentence


def test_nothing_else_is_wrong_with_the_document() -> None:
    assert len(faults(AS_WRITTEN, SENDS)) == 8


@pytest.mark.parametrize(
    ("exchange", "key"), [("dlq-exchange", "dlq-routing-key"), ("route-delay", "binding.x.4")]
)
def test_the_simulated_broker_agrees_that_the_letter_is_gone(exchange: str, key: str) -> None:
    broker = SimulatedBroker(AS_WRITTEN)
    assert not broker.publish(exchange, key, mandatory=False)
    assert [event.what for event in broker.journal] == [Happening.PUBLISHED, Happening.LOST]
