"""Every kind of address that the flows send letters to: what a topology must have a place for."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.plan import RECEIPTS
from service.flows.dlq_processor import policy as processor
from service.flows.dlq_processor import topology as processor_tables
from service.flows.event_bus import topology as bus
from service.flows.freeflow import topology as events
from service.flows.kdlq import topology as kdlq
from service.flows.settlement import topology as payments
from service.rooms import processor_rules
from service.settings import Settings

SendTo = tuple[str, str]

# A short key, none at all, and one for which a digest has to stand.
SAMPLE_KEYS = ("order.created", "", "k" * 255)


def sends_of(settings: Settings) -> Iterator[SendTo]:
    """Exchange and key, of the flows that are switched on."""
    yield RECEIPTS.exchange, RECEIPTS.routing_key
    if "dlq_processor" in settings.flows:
        yield from processor_sends(processor_rules(settings))
    if "freeflow" in settings.flows:
        yield from ((to.exchange, to.routing_key) for to in events.sends())
    if "settlement" in settings.flows:
        for topic in (payments.CREATED, payments.REQUESTED):
            yield from ((exchange.name, "") for exchange in (topic, payments.dead_exchange(topic)))
    if "kdlq" in settings.flows:
        yield from kdlq_sends(settings)
    if "event_bus" in settings.flows:
        for service in settings.event_bus.services:
            yield bus.main_exchange(service.name).name, "event"
            yield bus.retry_exchange(service.name).name, bus.RETRY_KEY
            yield "", bus.dead_name(service.name)


def kdlq_sends(settings: Settings) -> Iterator[SendTo]:
    """Of the consumers of RabbitMQ queues, and the record of what any of them skipped."""
    for each in settings.kdlq.consumers:
        yield "", kdlq.SKIPPED
        if each.broker == "rabbit":
            yield "", each.dlq
            targets = (each.redelivery or name for name in each.taken)
            yield from (("", kdlq.wait_name(to) if each.redelivery_delay else to) for to in targets)


def processor_sends(rules: processor.Rules) -> Iterator[SendTo]:
    """Of the central processor, and of the drill."""
    tables = processor_tables
    yield tables.DEAD_ADDRESS.exchange, tables.DEAD_ADDRESS.routing_key
    for tier in range(1, len(rules.tiers) + 1):
        for key in SAMPLE_KEYS:
            to = tables.delay_address(key, tier)
            yield to.exchange, to.routing_key
    if rules.drill:
        for queue in (tables.pass_queue, tables.fail_queue, tables.fail_pass_queue):
            yield tables.DRILL.name, queue(rules.kind).routing_key
