"""Addresses in what is said: shown to a person, and found in the broker's words."""

from __future__ import annotations

from service.core.plan import Address


def shown(to: Address) -> str:
    """An address, for a person."""
    if to.exchange:
        return f"exchange {to.exchange!r} key {to.routing_key!r}"
    return f"queue {to.routing_key!r}"


def is_blamed(refusal: Exception, to: Address) -> bool:
    """The broker closed the channel over one exchange: that letter's fault, or a neighbour's."""
    said = str(refusal)
    if not to.exchange:
        return False
    # RabbitMQ cuts what it says to 255 bytes: of a long name the end may be missing.
    return f"'{to.exchange}'" in said or (
        len(to.exchange) > 200 and f"'{to.exchange[:200]}" in said
    )
