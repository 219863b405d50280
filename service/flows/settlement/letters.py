"""The letters of the payment story: what a transaction's letters say, written and read."""

from __future__ import annotations

from uuid import UUID

from faststream.rabbit import RabbitExchange
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.core.outcome import Refuse
from service.edge.letter import Letter
from service.flows.settlement import topology as tables
from service.ledger.outbox import Outgoing
from service.ledger.transactions import Transaction


class Told(BaseModel):
    """The body of both letters. Workers believe the id alone: all else stands in the ledger."""

    model_config = ConfigDict(frozen=True)

    transaction_id: UUID = Field(description="The transaction.")
    account: str = Field("", description="Whose account it is.")
    amount: str = Field("", description="How much, in decimals.")
    currency: str = Field("", description="Of what, as ISO 4217 has it.")


def created(transaction: Transaction) -> Outgoing:
    """The letter that tells of a new transaction."""
    return _letter(tables.CREATED, transaction)


def requested(transaction: Transaction) -> Outgoing:
    """The letter that asks for a settlement."""
    return _letter(tables.REQUESTED, transaction)


def transaction_in(body: bytes) -> str:
    """The transaction a letter is about; a letter that does not say is refused."""
    try:
        return str(Told.model_validate_json(body).transaction_id)
    except ValidationError as wrong:
        what = wrong.errors()[0]
        place = ".".join(map(str, what["loc"])) or "the body"
        raise Refuse(f"{place}: {what['msg']}") from None


def for_the_post(outgoing: Outgoing) -> Letter:
    """A letter of the outbox as it is published."""
    properties = {
        "content_type": "application/json",
        "message_id": outgoing.letter,
        "type": outgoing.exchange,
    }
    return Letter(outgoing.body, {}, properties)


def _letter(topic: RabbitExchange, transaction: Transaction) -> Outgoing:
    draft = transaction.draft
    told = Told(
        transaction_id=UUID(transaction.id),
        account=draft.account,
        amount=draft.amount,
        currency=draft.currency,
    )
    # The same letter has the same id, however often it is sent.
    name = f"{topic.name}:{transaction.id}"
    return Outgoing(name, topic.name, transaction.id, told.model_dump_json().encode())
