"""The payment story's chapter of the AsyncAPI document."""

from __future__ import annotations

from service.core import duration
from service.edge.pages import Chapter, Page
from service.flows.settlement import messages
from service.flows.settlement.policy import Rules

INTRODUCTION = """
## Settlement

`POST /api/v1/transactions` makes a transaction; it is told to `transaction.created`, processed, asked for
at `settlement.requested`, and settled by the bank. Bind a queue of your own to either exchange to hear of
it: they are fanouts.

A settlement that fails goes back to its queue at once and is tried again, {attempts} deliveries in all,
as RabbitMQ counts them. Then it lies in `dlq.settlement.requested` with the error. A request whose worker
died of it that often is brought there by the queue too{expiry}. The ledger takes it in from there; the
monitor reads copies.
""".strip()

EXPIRY = ", and so is one that nobody took within {ttl}"

CREATED_QUEUE = """
New transactions, shared by all workers. A worker marks the transaction as processed and asks for its
settlement, both or neither.
""".strip()
REQUESTED_QUEUE = """
Settlements to be made, shared by all workers: a quorum queue, because its deliveries are counted. A
worker takes one at a time, asks the bank with the transaction's id as idempotency key, and marks the
transaction as settled.
""".strip()
MONITOR_QUEUE = """
A copy of every dead letter of both queues. The monitor writes a log line, counts what RabbitMQ gave up by
itself, sends the alert, and notes the reason in the ledger.
""".strip()
DEAD = "Dead letters of `{topic}`, in a queue of the same name, for people."

TAKEN = {
    "transaction.created.worker": CREATED_QUEUE,
    "settlement.requested.worker": REQUESTED_QUEUE,
    "dlq.settlement.monitor": MONITOR_QUEUE,
}
SENT = {
    "transaction.created": "A transaction was made. Sent once its row is written, from the outbox.",
    "settlement.requested": "A transaction was processed and shall be settled. Sent from the outbox.",
    "dlq.transaction.created": DEAD.format(topic="transaction.created"),
    "dlq.settlement.requested": DEAD.format(topic="settlement.requested"),
}
SENDING = "Sent persistent, mandatory and confirmed; under the transaction's id as routing key."
BURYING = "Sent persistent, mandatory and confirmed, before the last delivery is acknowledged."

PAGES = {
    "transaction.created": Page(
        "Transactions made",
        "Tell of a new transaction",
        SENDING,
        messages.PAYMENT_LETTER,
    ),
    "transaction.created.worker": Page(
        "Transactions to process",
        "Process a transaction and ask for its settlement",
        "A letter that comes twice finds the transaction processed and changes nothing.",
        messages.PAYMENT_LETTER,
    ),
    "settlement.requested": Page(
        "Settlements asked for",
        "Ask for a settlement",
        SENDING,
        messages.PAYMENT_LETTER,
    ),
    "settlement.requested.worker": Page(
        "Settlements to make",
        "Settle a transaction",
        "A failure goes back to the queue; the last one to `dlq.settlement.requested`.",
        messages.PAYMENT_LETTER,
    ),
    "dlq.transaction.created": Page(
        "Dead transactions",
        "Give up a transaction's letter, with the reason",
        BURYING,
        messages.DEAD_PAYMENT,
    ),
    "dlq.settlement.requested": Page(
        "Dead settlements",
        "Give up a settlement, with the reason",
        BURYING,
        messages.DEAD_PAYMENT,
    ),
    "dlq.settlement.monitor": Page(
        "Copies for the monitor",
        "Tell people of a dead letter",
        "The letter itself stays in its dead letter queue.",
        messages.DEAD_PAYMENT,
    ),
}


def chapter(rules: Rules) -> Chapter:
    """What integrators need to know of it, as its settings have it."""
    expiry = EXPIRY.format(ttl=duration.say(rules.ttl)) if rules.ttl else ""
    return Chapter(INTRODUCTION.format(attempts=rules.max_retries + 1, expiry=expiry), PAGES)
