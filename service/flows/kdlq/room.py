"""The room kdlq: consumers of the user's, on RabbitMQ and on Kafka, started from the settings."""

from __future__ import annotations

from dataclasses import replace

from faststream.rabbit import QueueType, RabbitBroker

from service.core.marks import Seal
from service.flows.kdlq import pages
from service.flows.kdlq import topology as tables
from service.flows.kdlq.kafka_room import Cluster, KafkaConsumers, OnKafka
from service.flows.kdlq.policy import NAME
from service.flows.kdlq.rabbit_room import OnRabbit, dead_queues, open_consumers, topology_of
from service.flows.room import DeadQueue, Reception, Room
from service.topology.tables import Topology


def room_of(
    on_rabbit: tuple[OnRabbit, ...],
    on_kafka: tuple[OnKafka, ...],
    cluster: Cluster,
    kind: QueueType,
    seal: Seal,
) -> Room:
    """Everything that the settings name; without a consumer nothing is declared."""

    def subscribe(broker: RabbitBroker, reception: Reception) -> None:
        open_consumers(broker, reception, on_rabbit, kind, seal)
        pages.announce(broker, tuple(each.rules for each in on_rabbit), kind)

    if not (on_rabbit or on_kafka):
        return Room(NAME, Topology(), subscribe)
    skipped = Topology(queues=(tables.skipped_queue(kind),))
    dead = (*dead_queues(on_rabbit), DeadQueue(tables.SKIPPED, discarded=True))
    room = Room(NAME, topology_of(on_rabbit, kind) + skipped, subscribe, dead=dead)
    if not on_kafka:
        return room
    kafka = KafkaConsumers(on_kafka, cluster, seal)
    return replace(room, work=(kafka.run,), trouble=lambda: kafka.trouble)
