"""The kinds of letters on the payment story's channels: their headers, and examples of each."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import SkipJsonSchema

from service.core import marks
from service.core.delivery import Envelope
from service.core.judge import judge
from service.core.marks import Seal
from service.core.outcome import Failed
from service.core.plan import plan
from service.edge.header_schema import Number, Text, sometimes
from service.edge.pages import Example, Kind
from service.flows.settlement import topology as tables
from service.flows.settlement.letters import Told
from service.flows.settlement.policy import Rules, flow

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
PAYMENT = "7b1c8a52-6f0e-4f5c-9f3e-2d1a4c5b6e7f"
BODY = Told(
    transaction_id=UUID(PAYMENT), account="ACME-1", amount="19.90", currency="EUR"
).model_dump_json()


class PaymentHeaders(BaseModel):
    """Further headers travel along untouched."""

    model_config = ConfigDict(extra="allow", frozen=True)

    letter: Text = sometimes(marks.LETTER, "The letter's id, as in `message_id`.")
    count: Number = sometimes(
        "x-delivery-count", "Written by RabbitMQ: how often this queue gave the letter out before."
    )


class DeadPaymentHeaders(BaseModel):
    """Why it lies here: in our words where a worker gave it up, in RabbitMQ's where the queue did."""

    model_config = ConfigDict(extra="allow", frozen=True)

    reason: Text = sometimes(marks.REASON, "Why a worker gave it up, as a person reads it.")
    error: Text = sometimes(marks.ERROR, "How the last attempt ended; 1 kB at most.")
    error_type: Text = sometimes(marks.ERROR_TYPE, "The kind of that end.")
    retries: Number = sometimes(marks.RETRY_COUNT, "How many retries were made.")
    queue: Text = sometimes(marks.ORIGINAL_QUEUE, "The queue it failed in.")
    signature: Text = sometimes(marks.SIGNATURE, "That all this was written by the service.")
    deaths: list[dict[str, object]] | SkipJsonSchema[None] = sometimes(
        "x-death",
        "Written by RabbitMQ where the queue itself gave it up: `expired`, or `delivery_limit` after"
        " a worker died of it too often.",
    )


def _dead() -> dict[str, object]:
    """What a letter carries after its fourth failure."""
    settlement = flow(tables.REQUESTED, Rules(), Seal(b"the key of the examples"))
    name, seen = f"{tables.REQUESTED.name}:{PAYMENT}", {"x-delivery-count": 3}
    envelope = Envelope(name, seen, name, NOON, tables.REQUESTED.name, PAYMENT, True)
    failed = Failed("the bank answered 503", "BankFailed")
    delivery = settlement.count(envelope).ended(failed)
    verdict = judge(delivery, settlement.policy(PAYMENT))
    return dict(plan(verdict, delivery, settlement.ways, settlement.seal).sends[0].marks)


EXPIRED: dict[str, object] = {
    "x-death": [
        {
            "queue": "settlement.requested.worker",
            "reason": "expired",
            "exchange": tables.REQUESTED.name,
            "routing-keys": [PAYMENT],
            "count": 1,
        }
    ]
}

PAYMENT_LETTER = Kind(
    "PaymentLetter",
    "A letter about a transaction",
    """
Says which transaction is meant; its `message_id` is the topic and that id, and stays the same however often
the letter is sent. Workers believe the id alone: amount and account are read from the ledger.

The body is JSON: `transaction_id`, `account`, `amount` (decimals, as text) and `currency`.
""".strip(),
    PaymentHeaders,
    (
        Example("first-delivery", "As it was sent", {}, BODY),
        Example("second-retry", "After two failures", {"x-delivery-count": 2}, BODY),
    ),
)
DEAD_PAYMENT = Kind(
    "DeadPaymentLetter",
    "A dead letter about a transaction",
    """
A letter that was given up, for people to read and to send back to the queue it failed in.

Body and properties are as they were. `x-dlo-reason` says why a worker gave it up, `x-death` why the
queue did.
""".strip(),
    DeadPaymentHeaders,
    (
        Example("attempts-spent", "The bank failed four times", _dead(), BODY),
        Example("expired", "Nobody took it for five minutes", EXPIRED, BODY),
    ),
)
