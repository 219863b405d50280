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
    return bool(to.exchange) and f"'{to.exchange}'" in str(refusal)
