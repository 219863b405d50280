"""What the settings say about KDLQ → its room."""

from __future__ import annotations

from faststream.rabbit import QueueType

from service.core.marks import Seal
from service.edge.kafka.needed import EXTRA, is_installed
from service.flows.handlers import NoHandler, find
from service.flows.kdlq.kafka_room import Cluster, OnKafka
from service.flows.kdlq.message import Message
from service.flows.kdlq.policy import Rules
from service.flows.kdlq.rabbit_room import OnRabbit
from service.flows.kdlq.room import room_of
from service.flows.kdlq.status import OnException
from service.flows.kdlq.topology import SKIPPED, Names
from service.flows.room import Room
from service.settings import BadSettings, Fault, Settings
from service.settings.kdlq import ConsumerSetting


def kdlq_room(settings: Settings, seal: Seal, kind: QueueType) -> Room:
    """The room of the consumers that the settings name; every one that cannot be opened is a fault."""
    on_rabbit, on_kafka, faults = [], [], []
    for number, each in enumerate(settings.kdlq.consumers):
        key = f"kdlq.consumers.{number}"
        try:
            handler = find(each.handler, Message, "message")
        except NoHandler as missing:
            faults.append(Fault(f"{key}.handler", f"given {each.handler!r}: {missing}"))
            continue
        if each.broker == "rabbit":
            on_rabbit.append(OnRabbit(rules_of(each), handler, each.prefetch))
        elif is_installed():
            on_kafka.append(OnKafka(rules_of(each), handler, each.group, each.wire))
        else:
            faults.append(Fault(f"{key}.broker", EXTRA))
    if faults:
        raise BadSettings(faults)
    return room_of(tuple(on_rabbit), tuple(on_kafka), _cluster(settings), kind, seal)


def rules_of(own: ConsumerSetting) -> Rules:
    """What the settings say about one KDLQ consumer."""
    return Rules(
        Names(own.source, own.dlq, own.redelivery, own.redelivery_delay),
        own.marker or own.handler,
        own.max_redeliveries,
        own.max_kills,
        own.informational_headers,
        OnException(own.on_exception),
        own.foreign == "take",
        SKIPPED,
    )


def _cluster(settings: Settings) -> Cluster:
    own = settings.kdlq.kafka
    client = {name: value.get_secret_value() for name, value in own.client.items()}
    timeout, pause = settings.rabbit.publish_timeout, settings.rabbit.reconnect
    return Cluster(own.servers, client, own.patience, timeout, pause, settings.shutdown.grace)
