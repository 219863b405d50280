"""Which letter this is, and which burial of it."""

from __future__ import annotations

from hashlib import sha256


def body_digest(body: bytes) -> bytes:
    """What stands for a body below: a large one is gone through once."""
    return sha256(body).digest()


def letter_identity(letter: str, origin_queue: str, body: bytes) -> str:
    """32 hex digits for one letter that died in one queue; `body` is the digest of its body.

    Senders reuse message ids: the same id with another body, or in another queue, is another letter.
    """
    name, queue = (
        letter.encode("utf-8", "surrogatepass"),
        origin_queue.encode("utf-8", "surrogatepass"),
    )
    said = b"%d:%b%d:%b%d:%b" % (len(name), name, len(queue), queue, len(body), body)
    return sha256(said).hexdigest()[:32]


def burial_digest(properties: bytes, headers: bytes, body: bytes) -> bytes:
    """The same bytes again are a copy of one burial, any other bytes are another; `body` is the digest
    of its body."""
    lengths = b"%d:%d:" % (len(properties), len(headers))
    return sha256(b"".join((lengths, properties, headers, body))).digest()
