"""The central processor as the settings have it, for commands that contact nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.settings import Settings

if TYPE_CHECKING:
    from service.flows.dlq_processor.policy import Rules

# A short key, none at all, and one for which a digest has to stand.
SAMPLE_KEYS = ("order.created", "", "k" * 255)


def rules_of(settings: Settings) -> Rules:
    """What the settings say of it; the composition says the same, but its import takes seconds."""
    from faststream.rabbit import QueueType

    from service.flows.dlq_processor.policy import Rules

    own = settings.dlq_processor
    kind = QueueType.QUORUM if settings.queues.type == "quorum" else QueueType.CLASSIC
    return Rules(own.tiers, own.max_retries, kind, own.drill)


def sends_of(rules: Rules) -> Iterator[tuple[str, str]]:
    """Every kind of address that it, or the drill, sends letters to."""
    from service.flows.dlq_processor import topology as tables

    yield tables.DEAD_ADDRESS.exchange, tables.DEAD_ADDRESS.routing_key
    for tier in range(1, len(rules.tiers) + 1):
        for key in SAMPLE_KEYS:
            to = tables.delay_address(key, tier)
            yield to.exchange, to.routing_key
    if rules.drill:
        for queue in (tables.pass_queue, tables.fail_queue, tables.fail_pass_queue):
            yield tables.DRILL.name, queue(rules.kind).routing_key
