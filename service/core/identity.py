"""Which letter this is, and which burial of it."""

from __future__ import annotations

from hashlib import sha256


def body_digest(body: bytes) -> bytes:
    """What stands for a body below: a large one is gone through once."""
    return sha256(body).digest()


def letter_identity(letter: str, origin_queue: str, digest: bytes) -> str:
    """32 hex digits for one letter that died in one queue, with a body of this digest.

    Senders reuse message ids: the same id with another body, or in another queue, is another letter.
    """
    name, queue = _bytes(letter), _bytes(origin_queue)
    said = b"%d:%b%d:%b%d:%b" % (len(name), name, len(queue), queue, len(digest), digest)
    return sha256(said).hexdigest()[:32]


def burial_digest(properties: bytes, headers: bytes, digest: bytes) -> bytes:
    """The same bytes again, with a body of this digest, are a copy of one burial; any other bytes are
    another."""
    lengths = b"%d:%d:" % (len(properties), len(headers))
    return sha256(b"".join((lengths, properties, headers, digest))).digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
