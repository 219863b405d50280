"""A receipt is a note: told once, before the acknowledgement, and never in its way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from service.core.marks import LETTER
from service.core.plan import RECEIPTS, Address, Note, Plan, Send, SentBack, Settle
from service.edge import carry_out as edge
from service.edge import tolerance
from service.edge.letter import Letter
from service.edge.post import NotSent, NotTaken, RabbitPost, Unroutable
from service.edge.tolerance import install

install()
TAKEN = Letter(b"a body", {"tenant": "acme"}, {"message_id": "id"})
NOTE = Note(RECEIPTS, {LETTER: "id"})


@dataclass
class Lane:
    """A post with one fault, and a delivery: what was done, in its order."""

    fault: Exception | None = None
    hangs: bool = False
    done: list[object] = field(default_factory=list)
    channel: None = None

    async def send(self, letter: Letter, send: Send) -> None:
        """Told, or not."""
        self.done.append((letter.body, send.to))
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault

    async def settle(self, how: Settle) -> None:
        """The end."""
        self.done.append(how.value)

    async def mend(self) -> None:
        """Nobody mends anything for a note."""
        self.done.append("mend")


@pytest.mark.parametrize(
    "lane",
    [
        Lane(),
        Lane(Unroutable("no such queue")),
        Lane(NotTaken("full")),
        Lane(NotSent("may not write there")),
        Lane(AssertionError("not a letter of this post")),
        Lane(hangs=True),
    ],
)
async def test_the_letter_is_acknowledged_whatever_becomes_of_the_note(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "NOTE_SECONDS", 0.05)
    means = edge.Means(lane, lane.mend, lane.settle)
    await edge.carry_out(Plan(Settle.ACK, (NOTE,)), TAKEN, means)
    assert lane.done == [(b"", RECEIPTS), "ack"]


@pytest.mark.parametrize("kind", [Note, SentBack])
async def test_a_missing_queue_is_no_trouble_of_the_post(
    rabbit_url: str, kind: type[Note] | type[SentBack]
) -> None:
    tolerance.install()
    post = RabbitPost(rabbit_url, timeout=5, ours=frozenset())
    await post.open()
    try:
        with pytest.raises(Unroutable):
            await post.send(TAKEN, kind(Address("", "no-such-queue"), {LETTER: "id"}))
        assert post.trouble is None
    finally:
        await post.close()
