"""A letter of the ledger: its bytes, as they were taken from the wire, ready to be sent again."""

from __future__ import annotations

from service.edge.letter import Letter
from service.edge.properties import read_properties
from service.edge.tolerance import DEFAULT_LONGEST, Headers


def letter_from(body: bytes, headers: bytes, properties: bytes) -> Letter:
    """Body, header table and properties as they came."""
    return Letter(body, Headers(headers, DEFAULT_LONGEST), read_properties(properties))
