"""Which rooms the settings open; the only place where a flow meets its settings."""

from __future__ import annotations

from collections.abc import Callable

from faststream.rabbit import QueueType, RabbitBroker

from service.core.marks import Seal
from service.flows.dlq_processor import consumers, drill
from service.flows.dlq_processor.policy import FindRoute, Rules, flow
from service.flows.room import Reception, Room
from service.settings import Settings


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


ROOMS: dict[str, Callable[[Settings, Seal, FindRoute], Room]] = {"dlq_processor": _dlq_processor}
