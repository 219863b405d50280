"""A machine without the extra [kafka]: prints what is said where Kafka is asked for, and nothing else.

`python -m tests.flows.kdlq.without_extra CONSUMER_ON_RABBIT CONSUMER_ON_KAFKA`
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.modules["confluent_kafka"] = None  # type: ignore[assignment]  # as if it were not installed

from service import KDLQ, KDLQConfig  # noqa: E402
from service.composition import create  # noqa: E402
from service.settings import BadSettings, Settings, load  # noqa: E402


def settings(consumer: str) -> Settings:
    """With this consumer."""
    folder = Path(tempfile.mkdtemp())
    given = {"DLO_KDLQ__CONSUMERS": f"[{{{consumer}}}]", "DLO_FLOWS": '["kdlq"]'}
    return load(folder, {**given, "DLO_KDLQ__KAFKA__SERVERS": '["k:9092"]'})


def main(on_rabbit: str, on_kafka: str) -> None:
    """RabbitMQ works; Kafka says what is missing."""
    KDLQ(KDLQConfig(servers="amqp://127.0.0.1/", dlq="x")).consumer(lambda _message: None, "q")
    create(settings(on_rabbit))
    try:
        KDLQ(KDLQConfig(servers="k:9092", dlq="x"))
    except ImportError as missing:
        print(missing)
    try:
        create(settings(on_kafka))
    except BadSettings as faults:
        print(faults)


if __name__ == "__main__":
    main(*sys.argv[1:])
