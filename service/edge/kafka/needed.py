"""The extra that the Kafka lane needs, and the sentence for where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec

EXTRA = "Kafka needs the extra [kafka]: pip install 'dead-letter-office[kafka]'"


class KafkaMissing(ImportError):
    """The Kafka libraries are not installed; says how to get them."""

    def __init__(self) -> None:
        super().__init__(EXTRA)


def is_installed() -> bool:
    """Whether the extra is there, without importing it."""
    return find_spec("confluent_kafka") is not None


def demand() -> None:
    """Go on where the extra is installed; else KafkaMissing."""
    if not is_installed():
        raise KafkaMissing
