"""Which rooms the settings open; the only place where a flow meets its settings."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from faststream.rabbit import QueueType, RabbitBroker

from service.core.marks import Seal
from service.flows.dlq_processor import consumers, drill
from service.flows.dlq_processor.policy import FindRoute, Rules, flow
from service.flows.room import Reception, Room
from service.flows.settlement import api as payments
from service.flows.settlement import consumers as payment_desks
from service.flows.settlement import policy as settling
from service.flows.settlement import topology as payment_tables
from service.flows.settlement.bank import Bank, SimulatedBank
from service.flows.settlement.http_bank import HttpBank
from service.flows.settlement.monitor import Alert, Monitor, Webhook, no_alert
from service.flows.settlement.outbox import Relay
from service.flows.settlement.workers import Workers
from service.ledger.book import Book
from service.settings import Settings


def rooms_of(settings: Settings, find: FindRoute) -> tuple[Room, ...]:
    """The rooms of the flows that are switched on."""
    return tuple(ROOMS[name](settings, seal_of(settings), find) for name in settings.flows)


def seal_of(settings: Settings) -> Seal:
    """The key that signs our marks."""
    key = settings.marks.key
    return Seal(key.get_secret_value().encode() if key else b"")


def kind_of(settings: Settings) -> QueueType:
    """The type of the queues we declare."""
    return QueueType.QUORUM if settings.queues.type == "quorum" else QueueType.CLASSIC


def processor_rules(settings: Settings) -> Rules:
    """What the settings say about the central processor."""
    own = settings.dlq_processor
    return Rules(own.tiers, own.max_retries, kind_of(settings), own.drill)


def _dlq_processor(settings: Settings, seal: Seal, find: FindRoute) -> Room:
    rules = processor_rules(settings)
    processor = flow(rules, find, seal)

    def subscribe(broker: RabbitBroker, reception: Reception) -> None:
        clerk = consumers.Clerk(reception.desk(processor), find)
        consumers.subscribe(broker, clerk, rules, settings.dlq_processor.prefetch)
        if rules.drill:
            drill.subscribe(broker, rules)

    return Room(processor.name, processor.topology, subscribe)


def settlement_rules(settings: Settings) -> settling.Rules:
    """What the settings say about settlement."""
    own = settings.settlement
    return settling.Rules(own.max_retries, own.ttl, kind_of(settings))


def bank_of(settings: Settings) -> Bank:
    """The bank the settings name, else a simulated one."""
    own = settings.settlement.bank
    if url := own.url.get_secret_value():
        return HttpBank(url, own.timeout)
    return SimulatedBank(
        frozenset(own.fail),
        frozenset(own.flaky),
        own.flaky_failures,
        frozenset(own.slow),
        own.slowness,
        own.failure_rate,
        random.random,
    )


def _alert(settings: Settings) -> Alert:
    url = settings.settlement.alert_url.get_secret_value()
    return Webhook(url) if url else no_alert


def _settlement(settings: Settings, seal: Seal, _find: FindRoute) -> Room:
    rules, book = settlement_rules(settings), Book(settings.database.url.get_secret_value())
    # Longer than a confirmation may take: what a relay has claimed, it has sent or given back.
    relay = Relay(book, lease=settings.rabbit.publish_timeout * 2, poll=settings.database.poll)
    workers = Workers(book, bank_of(settings), relay)
    created = settling.flow(payment_tables.CREATED, rules, seal)
    requested = settling.flow(payment_tables.REQUESTED, rules, seal)
    monitoring = settling.monitoring(rules, seal)

    def subscribe(broker: RabbitBroker, reception: Reception) -> None:
        desks = payment_desks.Desks(*map(reception.desk, (created, requested, monitoring)))
        monitor = Monitor(book, reception.listeners, _alert(settings))
        payment_desks.subscribe(broker, desks, workers, monitor, rules)

    async def hang_up_at_the_end(_reception: Reception) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await workers.bank.close()
            await book.close()

    return Room(
        settling.NAME,
        requested.topology,
        subscribe,
        work=(relay.run, hang_up_at_the_end),
        api=payments.router(book, relay.wake),
    )


ROOMS: dict[str, Callable[[Settings, Seal, FindRoute], Room]] = {
    "dlq_processor": _dlq_processor,
    "settlement": _settlement,
}
