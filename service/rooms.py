"""Which rooms the settings open; where a flow meets its settings (KDLQ's in `kdlq_room`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping

from faststream.rabbit import QueueType, RabbitBroker

from service.core.marks import Seal
from service.edge.wire.job import Clerk
from service.flows.dlq_processor import consumers, drill, relaying
from service.flows.dlq_processor import topology as processor_tables
from service.flows.dlq_processor.policy import FindRoute, Rules, flow
from service.flows.event_bus import consumers as bus
from service.flows.event_bus import functions
from service.flows.event_bus import policy as bus_policy
from service.flows.event_bus import topology as bus_tables
from service.flows.event_bus.event import Door
from service.flows.event_bus.pages import announce
from service.flows.event_bus.push import Endpoint, Pusher
from service.flows.freeflow import consumers as events
from service.flows.freeflow import handlers, policy
from service.flows.freeflow import topology as event_tables
from service.flows.freeflow.topology import DOMAINS
from service.flows.handlers import NoHandler
from service.flows.room import DeadQueue, Reception, Room, Wire
from service.flows.settlement import api as payments
from service.flows.settlement import consumers as payment_desks
from service.flows.settlement import policy as settling
from service.flows.settlement import topology as payment_tables
from service.flows.settlement.bank import Bank, SimulatedBank
from service.flows.settlement.http_bank import HttpBank
from service.flows.settlement.monitor import Alert, Monitor, Webhook, no_alert
from service.flows.settlement.outbox import Relay
from service.flows.settlement.workers import Workers
from service.kdlq_room import kdlq_room
from service.ledger.book import Book
from service.settings import BadSettings, Fault, Settings
from service.settings.event_bus import ServiceSetting
from service.settings.model import FLOWS


def rooms_of(settings: Settings, find: FindRoute) -> tuple[Room, ...]:
    """The rooms of the flows that are switched on."""
    return tuple(ROOMS[name](settings, seal_of(settings), find) for name in settings.flows)


def seal_of(settings: Settings) -> Seal:
    """The key that signs our marks."""
    marks = settings.marks
    old = tuple(key.get_secret_value().encode() for key in marks.old_keys if key)
    return Seal(marks.key.get_secret_value().encode() if marks.key else b"", old)


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

    def clerks(reception: Reception) -> Mapping[str, Clerk]:
        return relaying.clerks(processor, rules, find, reception)

    own = settings.dlq_processor
    wire = Wire(clerks, own.prefetch) if own.lane == "wire" else None
    dead = DeadQueue(processor_tables.dead_queue(rules.kind).name)
    return Room(processor.name, processor.topology, subscribe, wire, dead=(dead,))


def freeflow_rules(settings: Settings) -> policy.Rules:
    """What the settings say about FreeFlow."""
    own = settings.freeflow
    waits = tuple(own.tiers.values())
    return policy.Rules(waits, own.max_retries, own.return_to, kind_of(settings))


def _freeflow(settings: Settings, seal: Seal, _find: FindRoute) -> Room:
    rules, paths = freeflow_rules(settings), settings.freeflow.handlers

    def subscribe(broker: RabbitBroker, reception: Reception) -> None:
        takers = {domain: handlers.find(path) for domain, path in paths.items()}
        desks = {domain: reception.desk(policy.flow(domain, rules, seal)) for domain in takers}
        events.subscribe(broker, desks, takers, rules, settings.freeflow.prefetch)

    dead = DeadQueue(event_tables.dead_queue(rules.kind).name)
    return Room(policy.NAME, rules.topology, subscribe, dead=(dead,))


def handler_faults(values: Mapping[str, object]) -> Iterator[Fault]:
    """What is wrong with the handlers that the settings name, found before anything starts.

    The values are as they were given: what the settings themselves find wrong is not said again.
    """
    flows, own = values.get("flows", FLOWS), values.get("freeflow")
    paths = own.get("handlers") if isinstance(own, Mapping) else None
    if not isinstance(paths, Mapping) or not isinstance(flows, list | tuple):
        return
    for domain, path in paths.items() if policy.NAME in flows else ():
        if domain not in DOMAINS or not isinstance(path, str):
            continue
        try:
            handlers.find(path)
        except NoHandler as fault:
            yield Fault(f"freeflow.handlers.{domain}", str(fault))


def bus_rules(settings: Settings) -> bus_policy.Rules:
    """What the settings say about every service of the event bus."""
    own = settings.event_bus
    return bus_policy.Rules(own.max_retries, own.retry_after, kind_of(settings))


def _event_bus(settings: Settings, seal: Seal, _find: FindRoute) -> Room:
    rules, pusher, given = bus_rules(settings), Pusher(), settings.event_bus.services
    doors = _doors(given, pusher, rules)
    services = [bus.Service(s.name, doors[s.name], s.prefetch) for s in given]
    names = tuple(service.name for service in services)

    def subscribe(broker: RabbitBroker, reception: Reception) -> None:
        for service in services:
            desk = bus.desk_of(service, rules, reception, seal)
            bus.subscribe(broker, bus.courier_of(service, rules, desk), rules)
        announce(broker, names, rules)

    async def hang_up(_reception: Reception) -> None:
        await pusher.until_cancelled()

    topology = bus_tables.tables(names, rules.retry_after, rules.kind)
    dead = tuple(DeadQueue(bus_tables.dead_queue(name, rules.kind).name) for name in names)
    return Room(bus_policy.NAME, topology, subscribe, work=(hang_up,), dead=dead)


def _doors(
    given: tuple[ServiceSetting, ...], pusher: Pusher, rules: bus_policy.Rules
) -> dict[str, Door]:
    """A door for each service; every handler that is not there is a fault of the settings."""
    doors: dict[str, Door] = {}
    faults: list[Fault] = []
    for number, service in enumerate(given):
        try:
            doors[service.name] = _door(service, pusher, rules)
        except NoHandler as missing:
            key = f"event_bus.services.{number}.handler"
            faults.append(Fault(key, f"given {service.handler!r}: {missing}"))
    if faults:
        raise BadSettings(faults)
    return doors


def _door(service: ServiceSetting, pusher: Pusher, rules: bus_policy.Rules) -> Door:
    if service.endpoint is None:
        return functions.door(functions.find(service.handler), service.timeout)
    url, refuse = service.endpoint.get_secret_value(), service.refuse_client_errors
    return pusher.door(Endpoint(url, service.timeout, rules.retry_after, refuse))


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
    # Longer than a confirmation usually takes; while one takes longer, the relay renews its claim.
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
        dead=tuple(
            DeadQueue(payment_tables.dead_queue(topic, rules.kind).name)
            for topic in (payment_tables.CREATED, payment_tables.REQUESTED)
        ),
    )


def _kdlq(settings: Settings, seal: Seal, _find: FindRoute) -> Room:
    return kdlq_room(settings, seal, kind_of(settings))


ROOMS: dict[str, Callable[[Settings, Seal, FindRoute], Room]] = {
    "dlq_processor": _dlq_processor,
    "freeflow": _freeflow,
    "event_bus": _event_bus,
    "kdlq": _kdlq,
    "settlement": _settlement,
}
