"""Which letter, which burial: what ledgers hold is compared with these for years."""

from __future__ import annotations

from service.core.identity import body_digest, burial_digest, letter_identity

BODY = body_digest(b"{}")


def test_the_same_letter_has_the_same_identity_for_ever() -> None:
    assert letter_identity("a", "orders", BODY) == "d8d072fa3dfe2932a1259e7c3ddc8743"
    assert (
        burial_digest(b"\x00\x00", b"\x01aV", BODY).hex()
        == "0e7929f1aecdcd9184038095c2758e735788c4cc5e082da7ad0352d8e21faef4"
    )


def test_another_id_queue_or_body_is_another_letter() -> None:
    said = [("a", "orders", BODY), ("b", "orders", BODY), ("a", "orders2", BODY)]
    said += [("aorders", "", BODY), ("a", "orders", body_digest(b"[]")), ("\udc80", "orders", BODY)]
    assert len({letter_identity(*each) for each in said}) == len(said)


def test_any_other_bytes_are_another_burial() -> None:
    said = [(b"ab", b"c", BODY), (b"a", b"bc", BODY), (b"ab", b"c", body_digest(b""))]
    assert len({burial_digest(*each) for each in said}) == len(said)
