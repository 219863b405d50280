"""Which letter this is, and which burial of it."""

from __future__ import annotations

from hashlib import sha256


def letter_identity(letter: str, origin_queue: str, body: bytes) -> str:
    """32 hex digits for one letter that died in one queue.

    Senders reuse message ids: the same id with another body, or in another queue, is another letter.
    """
    said = (letter.encode("utf-8", "surrogatepass"), origin_queue.encode("utf-8", "surrogatepass"))
    parts = (*said, sha256(body).digest())
    return sha256(b"".join([b"%d:%b" % (len(part), part) for part in parts])).hexdigest()[:32]


def burial_digest(properties: bytes, headers: bytes, body: bytes) -> bytes:
    """The same bytes again are a copy of one burial; any other bytes are another."""
    lengths = b"%d:%d:" % (len(properties), len(headers))
    return sha256(b"".join((lengths, properties, headers, body))).digest()
