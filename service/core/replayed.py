"""The mark of a replay: which job sent this letter back, believed only where our own key signed it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from service.core.marks import REPLAY, SIGNATURE, Seal

TEXT = re.compile(r"([0-9a-f]{16})\.(\d{1,9})\.([0-9a-f]{32})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Replayed:
    """A letter of the ledger that a job has sent: the job, its place in it, the letter's id there."""

    job: str
    position: int
    letter: str


def marked(replayed: Replayed, queue: str, body: bytes, seal: Seal) -> str:
    """The text of the mark; it holds for this queue and this body, and for no copy of the headers."""
    said = f"{replayed.job}.{replayed.position}.{replayed.letter}"
    return f"{said}.{seal.prove(*_claim(said, queue, body))}"


def replayed_in(text: str, queue: str, body: bytes, seal: Seal) -> Replayed | None:
    """Who sent this letter to this queue; None where nobody of ours did, or where it is another letter."""
    found = TEXT.fullmatch(text)
    if found is None:
        return None
    said, _, proof = text.rpartition(".")
    if not seal.proves(proof, *_claim(said, queue, body)):
        return None
    return Replayed(found[1], int(found[2]), found[3])


def receipt(text: str, seal: Seal) -> dict[str, str]:
    """The marks of a receipt: a handler under our middleware took the letter of this mark."""
    return {REPLAY: text, SIGNATURE: seal.prove("handled", text)}


def received(headers: Mapping[str, object], seal: Seal) -> Replayed | None:
    """What a receipt is for; None where no holder of our key wrote it."""
    text, proof = headers.get(REPLAY), headers.get(SIGNATURE)
    found = TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None or not isinstance(proof, str) or not seal.proves(proof, "handled", found[0]):
        return None
    return Replayed(found[1], int(found[2]), found[3])


def _claim(said: str, queue: str, body: bytes) -> tuple[str, ...]:
    return "replay", said, queue, sha256(body).hexdigest()
