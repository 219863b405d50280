"""The central processor as the settings have it, for commands that contact nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.settings import Settings

if TYPE_CHECKING:
    from service.flows.dlq_processor.policy import Rules


def rules_of(settings: Settings) -> Rules:
    """What the settings say of it; the composition says the same, but its import takes seconds."""
    from faststream.rabbit import QueueType

    from service.flows.dlq_processor.policy import Rules

    own = settings.dlq_processor
    kind = QueueType.QUORUM if settings.queues.type == "quorum" else QueueType.CLASSIC
    return Rules(own.tiers, own.max_retries, kind, own.drill)
