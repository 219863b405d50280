"""What the document says: everything that stands on the broker, and a sentence about each of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from service.core import marks
from service.edge.asyncapi import FILE, current
from service.edge.pages import Kind
from service.flows.dlq_processor import messages
from service.flows.freeflow import messages as freeflow
from service.flows.freeflow.topology import DOMAINS, TIERS
from service.flows.settlement import messages as payments
from service.office.receipt_page import RECEIPT
from service.settings import Settings
from service.topology.tables import Topology
from tests.asyncapi.conftest import written

Json = dict[str, Any]
KINDS = (
    messages.DEAD_LETTERED,
    messages.WAITING,
    messages.RETURNED,
    messages.DEAD,
    messages.DRILL,
    freeflow.EVENT,
    freeflow.WAITING,
    freeflow.DEAD,
    payments.PAYMENT_LETTER,
    payments.DEAD_PAYMENT,
    RECEIPT,
)


def test_the_committed_document_is_current() -> None:
    said = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    assert said == current(), "asyncapi/asyncapi.yaml is stale: run `just asyncapi` and commit it"


def test_it_is_written_in_the_same_order_every_time() -> None:
    assert len({current() for _ in range(3)}) == 1


def test_every_queue_appears_with_its_arguments(document: Json, topology: Topology) -> None:
    said = {c["x-queue"]: c["x-queue-arguments"] for c in _channels(document) if "x-queue" in c}
    assert said == {queue.name: dict(queue.arguments) for queue in topology.queues}


def test_every_binding_appears(document: Json, topology: Topology) -> None:
    said = {
        (row["exchange"], row["type"], channel["x-queue"], row["key"])
        for channel in _channels(document)
        for row in channel.get("x-queue-bindings", ())
    }
    assert said == {
        (row.exchange.name, row.exchange.type.value, row.queue.name, row.key)
        for row in topology.bindings
    }


def test_every_exchange_appears(document: Json, topology: Topology) -> None:
    said = {
        row["exchange"]
        for channel in _channels(document)
        for row in channel.get("x-queue-bindings", ())
    }
    assert said == {exchange.name for exchange in topology.exchanges}


@pytest.mark.parametrize(
    ("queue", "wait"),
    [("queue.delay.1", 10_000), ("queue.delay.2", 15_000), ("queue.delay.3", 20_000)],
)
def test_a_delay_queue_says_how_long_and_where_to(document: Json, queue: str, wait: int) -> None:
    tier = queue[-1]
    assert document["channels"][queue]["x-queue-arguments"] == {
        "x-dead-letter-exchange": f"retry-exchange-{tier}",
        "x-dead-letter-routing-key": f"retry.#.{tier}",
        "x-message-ttl": wait,
        "x-queue-type": "classic",
    }


def test_what_the_service_sends_and_what_it_receives(document: Json) -> None:
    actions = {
        operation["channel"]["$ref"].rpartition("/")[2]: operation["action"]
        for operation in document["operations"].values()
    }
    tiers = ("1", "2", "3")
    assert actions == {
        "retry-queue": "receive",
        **{f"retry-queue-{tier}": "receive" for tier in tiers},
        **{f"test-{end}-queue": "receive" for end in ("pass", "fail", "fail-pass")},
        **{f"queue.delay.{tier}": "send" for tier in tiers},
        "dlq-queue": "send",
        "origin-queue": "send",
        **{f"freeflow.{domain}": "send" for domain in DOMAINS},  # none of them has a handler
        **{f"freeflow.{d}.retry.{tier}": "send" for d in DOMAINS for tier in TIERS},
        "freeflow.events.dlq": "send",
        "event-bus-retry-queue": "send",
        "event-bus-dlq": "send",
        **dict.fromkeys(("kdlq-dlq", "kdlq.skipped"), "send"),
        **dict.fromkeys(("transaction.created", "settlement.requested"), "send"),
        **dict.fromkeys(("dlq.transaction.created", "dlq.settlement.requested"), "send"),
        **dict.fromkeys(("transaction.created.worker", "settlement.requested.worker"), "receive"),
        "dlq.settlement.monitor": "receive",
        "dlo.receipts": "receive",
    }


def test_a_domain_with_a_handler_is_received() -> None:
    handlers = {"user": "tests.flows.freeflow.team:event"}
    document = written(Settings.model_validate({"freeflow": {"handlers": handlers}}))
    assert document["operations"]["receive-freeflow.user"]["title"] == "Events of user"
    assert "send-freeflow.user" not in document["operations"]


def test_the_queues_of_a_kdlq_consumer() -> None:
    own = {"source": "a", "dlq": "a.dlq", "redelivery": "a.again", "redelivery_delay": "5s"}
    consumers = [{**own, "handler": "tests.flows.kdlq.team:handle"}]
    settings = {"flows": ["kdlq"], "kdlq": {"consumers": consumers}}
    document = written(Settings.model_validate(settings))
    assert set(document["operations"]) == {
        *("receive-a", "receive-a.again", "receive-dlo.receipts"),
        *("send-a.dlq", "send-kdlq.wait.a.again", "send-kdlq.skipped"),
    }
    assert document["operations"]["receive-a.again"]["title"] == "Messages of a.again"


def test_what_is_sent_is_persistent_and_mandatory(document: Json) -> None:
    for operation in document["operations"].values():
        if operation["action"] == "send":
            binding = operation["bindings"]["amqp"]
            assert (binding["deliveryMode"], binding["mandatory"]) == (2, True)


@pytest.mark.parametrize("part", ["channels", "operations", "messages"])
def test_nothing_is_left_without_a_title_and_a_description(document: Json, part: str) -> None:
    things = (document["components"] if part == "messages" else document)[part]
    assert things
    for name, thing in things.items():
        assert thing["title"].strip(), name
        assert len(thing["description"].split()) > 3, name


def test_every_header_is_described(document: Json) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"], name
        for header, about in schema.get("properties", {}).items():
            assert about["description"].strip(), f"{name}: {header}"


def test_every_mark_of_the_service_is_in_a_schema(document: Json) -> None:
    schemas = document["components"]["schemas"].values()
    assert {name for schema in schemas for name in schema.get("properties", ())} >= marks.OURS


def test_every_variable_part_of_an_address_is_explained(document: Json) -> None:
    for name, channel in document["channels"].items():
        variable = {part.partition("}")[0] for part in channel["address"].split("{")[1:]}
        assert set(channel.get("parameters", {})) == variable, name


def test_the_foreign_teams_side_is_explained(document: Json) -> None:
    said = document["info"]["description"]
    for word in (
        "x-dead-letter-exchange",
        "retry-exchange",
        "retry-routing-key",
        "dlq_event_config",
    ):
        assert f"`{word}`" in said


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_examples_are_letters_of_their_kind(kind: Kind) -> None:
    assert kind.examples
    for example in kind.examples:
        assert kind.headers.model_validate(dict(example.headers)).model_dump(
            by_alias=True, exclude_none=True, mode="json"
        ) == dict(example.headers)


def test_a_retried_and_a_dead_letter_are_shown(document: Json) -> None:
    shown = {name: _examples(document, name) for name in ("ReturnedLetter", "DeadLetter")}
    assert [headers[marks.RETRY_COUNT] for headers in shown["ReturnedLetter"]] == [1]
    assert [headers[marks.REASON] for headers in shown["DeadLetter"]] == [
        "failed 3 times: rejected by a consumer of orders",
        "no route for order.created",
    ]


def test_secrets_and_addresses_of_this_machine_stay_out() -> None:
    local = Settings.model_validate(
        {
            "rabbit": {"url": "amqp://someone:sesame@broker.inside:5673/accounts"},
            "database": {"url": "postgresql+asyncpg://clerk:sesame@ledger.inside/dlo"},
            "marks": {"key": "a key that nobody may read"},
        }
    )
    assert written(local) == yaml.safe_load(current())


def test_other_settings_are_another_document() -> None:
    quorum = Settings.model_validate(
        {
            "flows": ["dlq_processor"],
            "queues": {"type": "quorum"},
            "dlq_processor": {"tiers": ["1m"], "drill": False},
        }
    )
    channels = written(quorum)["channels"]
    assert list(channels) == [
        *("retry-queue", "origin-queue", "dlq-queue", "queue.delay.1", "retry-queue-1"),
        "dlo.receipts",
    ]
    assert channels["queue.delay.1"]["x-queue-arguments"]["x-message-ttl"] == 60_000
    assert channels["queue.delay.1"]["x-queue-arguments"]["x-queue-type"] == "quorum"


def _channels(document: Json) -> Iterator[Json]:
    yield from document["channels"].values()


def _examples(document: Json, message: str) -> list[Json]:
    return [
        example["headers"] for example in document["components"]["messages"][message]["examples"]
    ]
