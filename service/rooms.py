"""Which rooms the settings open; the only place where a flow meets its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from faststream.rabbit import QueueType, RabbitBroker

from service.core.marks import Seal
from service.flows.dlq_processor import consumers, drill
from service.flows.dlq_processor.policy import FindRoute, Rules, flow
from service.flows.freeflow import consumers as events
from service.flows.freeflow import handlers, policy
from service.flows.freeflow.topology import DOMAINS
from service.flows.room import Reception, Room
from service.settings import Fault, Settings
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

    return Room(processor.name, processor.topology, subscribe)


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

    return Room(policy.NAME, rules.topology, subscribe)


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
        except handlers.NoHandler as fault:
            yield Fault(f"freeflow.handlers.{domain}", str(fault))


ROOMS: dict[str, Callable[[Settings, Seal, FindRoute], Room]] = {
    "dlq_processor": _dlq_processor,
    "freeflow": _freeflow,
}
