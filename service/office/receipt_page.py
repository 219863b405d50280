"""The replays' chapter of the AsyncAPI document."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from service.core import marks
from service.core.marks import Seal
from service.core.plan import RECEIPTS
from service.core.replayed import Replayed, marked, receipt
from service.edge.header_schema import always
from service.edge.pages import Chapter, Example, Kind, Page

INTRODUCTION = """
## Replays

An operator sends dead letters back to the queue they died in, or to another one, through the default
exchange. Such a letter carries `x-dlo-replay`, which names the job; it travels with retries, so that the
letter is recognised when it dies again. A handler under our middleware that takes one tells so by an
empty message to `dlo.receipts`. A service in any other way of working need do nothing: a letter that is
not seen again in the job's watch window counts as quiet.
""".strip()

RECEIPTS_QUEUE = """
Receipts: a handler took a letter that a replay had sent. Written by the service itself and by our
middleware in other processes; where the queue does not exist, nobody misses it.
""".strip()


class ReceiptHeaders(BaseModel):
    """Which letter of which replay, and that a holder of the key says so."""

    model_config = ConfigDict(extra="allow", frozen=True)

    letter: str = always(marks.LETTER, "The letter's id.")
    replay: str = always(marks.REPLAY, "The mark that the letter carried.")
    signature: str = always(marks.SIGNATURE, "That a holder of the key wrote this receipt.")


def _example() -> dict[str, object]:
    one, seal = Replayed("4f6c0a1b2c3d4e5f", 12, "0" * 32), Seal(b"an example of a key")
    text = marked(one, "orders", b"{}", seal)
    return {marks.LETTER: "order-4711", **receipt(text, seal)}


RECEIPT = Kind(
    "Receipt",
    "A letter was taken",
    "A handler took a letter that a replay had sent. The body is empty.",
    ReceiptHeaders,
    (Example("taken", "The twelfth letter of a replay was taken", _example(), ""),),
)
CHAPTER = Chapter(
    INTRODUCTION,
    {
        RECEIPTS.routing_key: Page(
            "Receipts",
            "Hear that a replayed letter was taken",
            "Noted in the ledger, then acknowledged; one that the key did not sign is let go.",
            RECEIPT,
        )
    },
)
